/**
 * Outputs and consumed offsets in one transaction, one after another under each transactional id. A commit of a
 * stage runs under the id of an input partition: who is given the partition next takes that id over first
 * (`fence`), which ends what its last owner left open, and from then on refuses what the last owner still sends.
 */
import type { Offsets, Producer, Transaction } from 'kafkajs'
import type { GraspError } from '../../errors/grasp-error.ts'
import type { Place } from '../port.ts'
import { type BatchLimits, type Prepared, sendAll } from './batches.ts'
import type { Broker, Client, Cluster } from './client.ts'
import { typeOf } from './faults.ts'
import { type Member, NO_MEMBER, OUTDATED } from './requests.ts'
import { delay, isPassing, patiently, retrying } from './retrying.ts'
import { Turns } from './turns.ts'

export interface Consumed {
  /** The group's id in the cluster. */
  readonly groupId: string
  /** In whose name; the group takes it only of one who is a member by then. */
  readonly member: () => Member
  readonly topics: Offsets['topics']
}

export interface TransactionWork {
  readonly transactionalId: string
  readonly outputs: readonly Prepared[]
  readonly consumed?: Consumed
  /** Asked each time before anything is written, when the id is this process's; what it throws ends the work. */
  readonly ready?: () => Promise<void>
  /** Made when the outputs are written, since what it says depends on where they went. */
  readonly last?: (places: readonly Place[]) => Promise<readonly Prepared[]>
  /** Told where these went, each time that they are written. */
  readonly lastAt?: (places: readonly Place[]) => void
  /** After an answer was lost: whether the transaction is in. */
  readonly isIn: (places: readonly Place[]) => Promise<boolean>
  /**
   * Asked when the id was taken over or timed out, or the member's generation is over: throws when the partitions
   * are no longer this process's.
   */
  readonly confirm?: () => Promise<void>
  /** What is told when others take the id over again and again. */
  readonly takenOver: (cause: unknown) => GraspError
}

/** The transaction was aborted, by its timeout or by somebody who took the id over. */
const FENCED = new Set([
  'INVALID_PRODUCER_EPOCH',
  'PRODUCER_FENCED',
  'INVALID_TXN_STATE',
  'INVALID_PRODUCER_ID_MAPPING',
  'UNKNOWN_PRODUCER_ID',
  'OUT_OF_ORDER_SEQUENCE_NUMBER',
])
/** What a coordinator answers, too, when several take an id from each other at the same moment. */
const UNKNOWN = 'UNKNOWN'
const BUSY_MS = 3
const MOST_BUSY_MS = 100
/** Who was fenced waits for a time of its own, or two that take an id from each other would never get anywhere. */
const FENCED_MS = 100
const MOST_FENCED_MS = 5_000
const MOST_FENCED = 8

export class Transactions {
  readonly #client: Client
  readonly #limits: BatchLimits
  readonly #producers = new Map<string, Promise<Producer>>()
  /** In whose name the work at hand under each id commits. */
  readonly #members = new Map<string, () => Member>()
  readonly #turns = new Turns()

  constructor(client: Client, limits: BatchLimits) {
    this.#client = client
    this.#limits = limits
  }

  /** Takes a transactional id over; resolves when what was left under it is committed or aborted for good. */
  async fence(control: Cluster, transactionalId: string): Promise<void> {
    this.#discard(transactionalId)
    const group = { groupId: transactionalId, coordinatorType: 1 }
    const request = { transactionalId, transactionTimeout: this.#client.timeouts.transaction }
    type TransactionCoordinator = Broker & { initProducerId(of: typeof request): Promise<unknown> }
    await this.#whileBusy(() =>
      retrying(control, async () => {
        const coordinator = (await control.findGroupCoordinator(group)) as TransactionCoordinator
        await coordinator.initProducerId(request)
      }),
    )
  }

  /** The process no longer works on the partition of this id. */
  forget(transactionalId: string): void {
    this.#discard(transactionalId)
  }

  /** Errors: those of `ready` and `confirm`, and whatever does not pass. */
  run(work: TransactionWork): Promise<Place[]> {
    return this.#turns.take(work.transactionalId, () => this.#run(work))
  }

  async #run(work: TransactionWork): Promise<Place[]> {
    const deadline = Date.now() + this.#client.timeouts.away
    let fenced = 0
    for (let pause = BUSY_MS; ; pause = Math.min(2 * pause, 500)) {
      const attempt = await this.#attempt(work)
      if ('places' in attempt) return attempt.places
      const { error, ending } = attempt
      if (ending !== undefined && (await this.#ended(work, ending))) return ending
      const type = typeOf(error)
      const stopped = this.#client.closed || Date.now() > deadline
      if (FENCED.has(type) || type === UNKNOWN) {
        await work.confirm?.()
        if (++fenced >= MOST_FENCED) throw type === UNKNOWN ? error : work.takenOver(error)
        await delay(Math.random() * Math.min(FENCED_MS * 2 ** fenced, MOST_FENCED_MS))
      } else if (OUTDATED.has(type)) {
        await work.confirm?.()
        if (stopped) throw error
      } else if (stopped || (!isBusy(error) && !isPassing(error))) throw error
      await delay(pause)
    }
  }

  /** After the answer to a commit was lost: whether it is in. */
  async #ended(work: TransactionWork, places: readonly Place[]): Promise<boolean> {
    const patience = { patience: this.#client.timeouts.away, stopped: () => this.#client.closed }
    // Connecting again ends what is still open under the id, one way or the other.
    await patiently(() => this.#producer(work.transactionalId), patience)
    return work.isIn(places)
  }

  async close(): Promise<void> {
    const producers = [...this.#producers.values()]
    this.#producers.clear()
    await Promise.all(
      producers.map(producer =>
        producer.then(
          each => this.#client.release(each),
          () => {},
        ),
      ),
    )
  }

  /** `ending`: where the outputs went, when the answer to the commit itself was lost. */
  async #attempt(
    work: TransactionWork,
  ): Promise<{ places: Place[] } | { error: unknown; ending: Place[] | undefined }> {
    const { transactionalId, outputs, consumed, last } = work
    let transaction: Transaction | undefined
    let ending: Place[] | undefined
    try {
      const producer = await this.#producer(transactionalId)
      await work.ready?.()
      transaction = await producer.transaction()
      const { compression } = this.#client
      const places = await sendAll(transaction.sendBatch, outputs, this.#limits, compression)
      if (last) {
        const more = await sendAll(transaction.sendBatch, await last(places), this.#limits, compression)
        work.lastAt?.(more)
      }
      if (consumed) {
        const { groupId, topics, member } = consumed
        this.#members.set(transactionalId, member)
        await transaction.sendOffsets({ consumerGroupId: groupId, topics })
      }
      ending = places
      await transaction.commit()
      return { places }
    } catch (error) {
      const isFenced = FENCED.has(typeOf(error))
      // One that was fenced is of no use any more, though kafkajs would go on with it.
      if (ending !== undefined || !transaction || isFenced) this.#discard(transactionalId)
      else await this.#abort(transactionalId, transaction)
      // A commit that was refused is not in.
      return { error, ending: isFenced ? undefined : ending }
    }
  }

  /** kafkajs's producer is of no use after a failed abort: another one, which ends the transaction, follows. */
  async #abort(transactionalId: string, transaction: Transaction): Promise<void> {
    try {
      await transaction.abort()
    } catch {
      this.#discard(transactionalId)
    }
  }

  #producer(transactionalId: string): Promise<Producer> {
    const known = this.#producers.get(transactionalId)
    if (known) return known
    const producer = this.#connect(transactionalId)
    this.#producers.set(transactionalId, producer)
    producer.catch(() => this.#producers.delete(transactionalId))
    return producer
  }

  async #connect(transactionalId: string): Promise<Producer> {
    const member = () => this.#members.get(transactionalId)?.() ?? NO_MEMBER
    const producer = this.#client.transactionalProducer(transactionalId, member)
    try {
      await producer.connect()
      // An empty transaction takes the id over without writing anything.
      await this.#whileBusy(async () => (await producer.transaction()).abort())
      return producer
    } catch (error) {
      await this.#client.release(producer)
      throw error
    }
  }

  /** Again while the last transaction under the id is not ended for good. */
  async #whileBusy(work: () => Promise<void>): Promise<void> {
    const deadline = Date.now() + this.#client.timeouts.away
    for (let pause = BUSY_MS; ; pause = Math.min(2 * pause, MOST_BUSY_MS)) {
      try {
        await work()
        return
      } catch (error) {
        if (!isBusy(error) || this.#client.closed || Date.now() > deadline) throw error
        await delay(pause)
      }
    }
  }

  #discard(transactionalId: string): void {
    const known = this.#producers.get(transactionalId)
    this.#producers.delete(transactionalId)
    known?.then(
      each => this.#client.release(each),
      () => {},
    )
  }
}

function isBusy(error: unknown): boolean {
  return typeOf(error) === 'CONCURRENT_TRANSACTIONS'
}

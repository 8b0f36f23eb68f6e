/**
 * Outputs and consumed offsets in one transaction. A transaction runs under the transactional id of an input
 * partition: who is given the partition next takes that id over first (`fence`), which ends what its last owner
 * left open, and from then on refuses what the last owner still sends.
 */
import { type Offsets, Partitioners, type Producer, type Transaction } from 'kafkajs'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Place } from '../port.ts'
import { type BatchLimits, type Prepared, sendAll } from './batches.ts'
import type { Broker, Client, Cluster } from './client.ts'
import { typeOf } from './faults.ts'
import { delay, isPassing, PATIENCE_MS, retrying } from './retrying.ts'

export interface TransactionWork {
  readonly transactionalId: string
  readonly outputs: readonly Prepared[]
  /** The group's id in the cluster, and its offsets. */
  readonly groupId: string
  readonly offsets: Offsets['topics']
  /** Made when the outputs are written, since what it says depends on where they went. */
  readonly last: () => Promise<readonly Prepared[]>
  /** After an answer was lost: whether the transaction is in. */
  readonly isIn: (places: readonly Place[]) => Promise<boolean>
  /** Asked when the id was taken over or timed out: throws when the partitions are no longer this process's. */
  readonly confirm: () => Promise<void>
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
const BUSY_MS = 3
const MOST_FENCED = 3

export class Transactions {
  readonly #client: Client
  readonly #limits: BatchLimits
  readonly #producers = new Map<string, Promise<Producer>>()

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
    const deadline = Date.now() + PATIENCE_MS
    for (;;) {
      try {
        await retrying(control, async () => {
          const coordinator = (await control.findGroupCoordinator(group)) as TransactionCoordinator
          await coordinator.initProducerId(request)
        })
        return
      } catch (error) {
        if (typeOf(error) !== 'CONCURRENT_TRANSACTIONS' || Date.now() > deadline) throw error
        await delay(BUSY_MS)
      }
    }
  }

  /** Errors: those of `confirm`, and whatever does not pass. */
  async run(work: TransactionWork): Promise<Place[]> {
    const deadline = Date.now() + PATIENCE_MS
    let fenced = 0
    for (let pause = BUSY_MS; ; pause = Math.min(2 * pause, 500)) {
      const attempt = await this.#attempt(work)
      if ('places' in attempt) return attempt.places
      const { error, ending } = attempt
      if (ending !== undefined) {
        // Connecting again ends what is still open under the id, one way or the other.
        await this.#producer(work.transactionalId)
        if (await work.isIn(ending)) return ending
      }
      const type = typeOf(error)
      if (FENCED.has(type)) {
        await work.confirm()
        if (++fenced >= MOST_FENCED) throw takenOver(work, error)
      } else if (type !== 'CONCURRENT_TRANSACTIONS' && !isPassing(error)) throw error
      if (Date.now() > deadline) throw error
      await delay(pause)
    }
  }

  async close(): Promise<void> {
    const producers = [...this.#producers.values()]
    this.#producers.clear()
    await Promise.all(
      producers.map(async producer => {
        await (await producer).disconnect()
      }),
    )
  }

  /** `ending`: where the outputs went, when the answer to the commit itself was lost. */
  async #attempt(
    work: TransactionWork,
  ): Promise<{ places: Place[] } | { error: unknown; ending: Place[] | undefined }> {
    const { transactionalId, outputs, groupId, offsets, last } = work
    let transaction: Transaction | undefined
    let ending: Place[] | undefined
    try {
      const producer = await this.#producer(transactionalId)
      transaction = await producer.transaction()
      const { compression } = this.#client
      const places = await sendAll(transaction.sendBatch, outputs, this.#limits, compression)
      await sendAll(transaction.sendBatch, await last(), this.#limits, compression)
      if (offsets.length > 0) await transaction.sendOffsets({ consumerGroupId: groupId, topics: offsets })
      ending = places
      await transaction.commit()
      return { places }
    } catch (error) {
      if (ending !== undefined || !transaction) this.#discard(transactionalId)
      else await this.#abort(transactionalId, transaction)
      // A commit that was refused is not in.
      return { error, ending: FENCED.has(typeOf(error)) ? undefined : ending }
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
    const producer = this.#client.kafka.producer({
      transactionalId,
      transactionTimeout: this.#client.timeouts.transaction,
      allowAutoTopicCreation: false,
      createPartitioner: Partitioners.DefaultPartitioner,
    })
    await producer.connect()
    // An empty transaction takes the id over without writing anything.
    const deadline = Date.now() + PATIENCE_MS
    for (;;) {
      try {
        await (await producer.transaction()).abort()
        return producer
      } catch (error) {
        if ((typeOf(error) !== 'CONCURRENT_TRANSACTIONS' && !isPassing(error)) || Date.now() > deadline) {
          await producer.disconnect()
          throw error
        }
        await delay(BUSY_MS)
      }
    }
  }

  #discard(transactionalId: string): void {
    const producer = this.#producers.get(transactionalId)
    this.#producers.delete(transactionalId)
    producer?.then(
      each => each.disconnect(),
      () => {},
    )
  }
}

function takenOver({ groupId }: TransactionWork, cause: unknown): GraspError {
  return new GraspError(
    'PARTITION_LOST',
    `another process works as group ${groupId} and took over what this one was working on; ` +
      'what this one did since is not committed',
    { cause },
  )
}

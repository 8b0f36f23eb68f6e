/** Writing what consumes nothing: appends, plain and conditional, and notes. */
import type { Topic } from '../../schemas/types.ts'
import { checkName } from '../check-name.ts'
import { anotherWriter, endsMoved } from '../ends-moved.ts'
import { noteChanged } from '../note-changed.ts'
import type { AppendNoting, AppendOptions, Output, Place } from '../port.ts'
import { Appender } from './appender.ts'
import { type BatchLimits, isWhole, type Prepared } from './batches.ts'
import type { Client } from './client.ts'
import type { ClusterLog } from './cluster-log.ts'
import { kafkaFault } from './faults.ts'
import { fetchPartitions } from './fetch.ts'
import { begunKey, noteKey, sealKey } from './meta.ts'
import type { Preparation } from './preparation.ts'
import { retrying } from './retrying.ts'
import { Transactions } from './transactions.ts'
import { Undecided } from './undecided.ts'

/** Requests are kept well under the brokers' limit of 100 MB. */
const REQUEST_BYTES = 32 << 20

/** Key → JSON. */
type MetaEntry = readonly [key: string, json: string]

export class Writer {
  readonly transactions: Transactions
  /** The transactional id of what consumes nothing. */
  readonly ownId: string
  readonly #client: Client
  readonly #log: ClusterLog
  readonly #preparation: Preparation
  readonly #batches: BatchLimits
  readonly #appender: Appender

  constructor(client: Client, log: ClusterLog, preparation: Preparation, maxMessageBytes: number) {
    this.#client = client
    this.#log = log
    this.#preparation = preparation
    this.#batches = { partitionBytes: maxMessageBytes, requestBytes: REQUEST_BYTES }
    this.#appender = new Appender(client, this.#batches)
    this.transactions = new Transactions(client, this.#batches)
    this.ownId = `${log.names.group('writer')}.${crypto.randomUUID()}`
  }

  /** Errors: RECORD_INVALID; LOG_UNAVAILABLE, NOTE_CHANGED where the log is not as the options say. */
  async append(outputs: readonly Output[], { after, notes }: AppendOptions): Promise<Place[]> {
    const prepared = await this.#preparation.outputs(outputs)
    if (notes) return this.noted(await this.#appendNoting(prepared, notes))
    if (after) return this.noted(await this.#appendAfter(prepared, after))
    if (prepared.length === 0) return []
    if (isWhole(prepared, this.#batches)) return this.noted(await this.#appender.append(prepared))
    const takenOver = (cause: unknown) => kafkaFault(this.#client.brokers, 'write to', cause)
    const work = { transactionalId: this.ownId, outputs: prepared, takenOver }
    return this.noted(await this.transactions.run({ ...work, isIn: places => this.isWritten(places) }))
  }

  /** Resolves when this process's copy has them too. */
  async writeMeta(entries: readonly MetaEntry[]): Promise<void> {
    if (entries.length === 0) return
    const places = await this.#appender.append(this.#preparation.meta(entries))
    this.#log.meta.wrote(places.at(-1)!.offset)
    await this.#log.meta.refresh()
  }

  /** Notes that the group has positions there. */
  async began(group: string, topic: Topic, partitions: readonly number[]): Promise<void> {
    const { meta } = this.#log
    const unknown = partitions.filter(p => !meta.hasBegun(group, topic, p))
    await this.writeMeta(unknown.map(p => [begunKey(group, topic, p), 'true']))
  }

  /** Seals at what is written by now. */
  async seals(topics: readonly Topic[]): Promise<MetaEntry[]> {
    return Promise.all(
      topics.map(async topic => {
        const ends = await this.#log.ends(topic, 'written')
        return [sealKey(topic), JSON.stringify(ends)] satisfies MetaEntry
      }),
    )
  }

  /** The log's ends are past these, also where a broker does not know it yet. */
  noted(places: Place[]): Place[] {
    for (const { topic, partition, offset } of places) this.#log.wrote(topic, partition, offset)
    return places
  }

  /** Whether a transaction that wrote there is in; nothing of it is open any more. */
  async isWritten(places: readonly Place[]): Promise<boolean> {
    const place = places.at(-1)
    if (!place) return false
    const { topic, partition, offset } = place
    const { cluster, names } = this.#log
    const cursors = new Map([[partition, offset]])
    const undecided = new Undecided(names.topic(topic), this.#client.timeouts.away)
    for (;;) {
      const fetched = await retrying(cluster, () =>
        fetchPartitions(cluster, names.topic(topic), cursors, { maxBytes: 1 << 20, maxWait: 100 }),
      )
      const answer = fetched.get(partition)!
      undecided.look(partition, answer)
      const { records, next } = answer
      if (records.length > 0 || next > offset) return Number(records[0]?.offset) === offset
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#appender.close(), this.transactions.close()])
  }

  /**
   * All that append after a topic's ends do so under one transactional id, which they take over before they look at
   * the ends. Of two, one has taken it last. If the other had committed by then, the last one sees what it wrote;
   * if not, it never will: taking the id over aborts what was open, and Kafka refuses the other from then on.
   */
  #appendAfter(
    outputs: readonly Prepared[],
    { topic, ends }: NonNullable<AppendOptions['after']>,
  ): Promise<Place[]> {
    const { names } = this.#log
    const ready = async () => {
      const now = await this.#log.ends(topic)
      const moved = await Promise.all(
        now.map(
          async (end, p) =>
            end !== ends[p] && !(end > ends[p]! && (await this.#log.isEmpty(topic, p, ends[p]!, end))),
        ),
      )
      if (moved.includes(true)) throw endsMoved(topic, ends, now)
    }
    return this.transactions.run({
      transactionalId: names.appenderId(topic),
      outputs,
      ready,
      isIn: places => this.isWritten(places),
      takenOver: cause => anotherWriter(topic, cause),
    })
  }

  /** As above: all that change notes together with records share an id, and look at the notes when it is theirs. */
  async #appendNoting(outputs: readonly Prepared[], notes: AppendNoting['notes']): Promise<Place[]> {
    for (const { name } of notes) checkName('note', name)
    const { meta, names } = this.#log
    let at = 0
    const places = await this.transactions.run({
      transactionalId: names.noterId,
      outputs,
      ready: async () => {
        await meta.refresh()
        const changed = notes.find(({ name, from }) => meta.note(name) !== from)
        if (changed) throw noteChanged(changed.name)
      },
      last: async went =>
        this.#preparation.meta(notes.map(({ name, to }) => [noteKey(name), JSON.stringify(to(went))])),
      lastAt: written => {
        at = written.at(-1)!.offset
      },
      isIn: async went => {
        await meta.refresh()
        return notes.every(({ name, to }) => meta.note(name) === to(went))
      },
      takenOver: cause => noteChanged(notes[0].name, cause),
    })
    meta.wrote(at)
    return places
  }
}

/**
 * The log on Apache Kafka, shared by the processes of many machines.
 *
 * A commit is one transaction, under the transactional id of the lowest input partition that it covers. A stage may
 * finish a batch over several partitions at once, and splitting that would not be atomic; so the other partitions
 * are guarded by the group: it takes their offsets only of a member of its present generation (`requests.ts`), and
 * who gets a partition next reads its position when no transaction is open that may still set it.
 */
import type { Admin, Offsets } from 'kafkajs'
import { Observable, type Subscriber, throwError } from 'rxjs'
import { GraspError } from '../../errors/grasp-error.ts'
import { type Records, TOPICS, type Topic } from '../../schemas/types.ts'
import { createCodec } from '../codec.ts'
import { anotherWriter, endsMoved } from '../ends-moved.ts'
import { noteChanged } from '../note-changed.ts'
import { partitionOf } from '../partition.ts'
import type {
  AppendNoting,
  AppendOptions,
  CommitRequest,
  Delivery,
  Log,
  Origin,
  Output,
  Place,
  Position,
  ReadOptions,
  TopicInfo,
} from '../port.ts'
import { allocate } from '../slab.ts'
import { Appender } from './appender.ts'
import { type BatchLimits, isWhole, OVERHEAD, type Prepared } from './batches.ts'
import { Client } from './client.ts'
import { ClusterLog, noSuchPosition } from './cluster-log.ts'
import { departed, kafkaFault } from './faults.ts'
import { fetchPartitions } from './fetch.ts'
import { workerOf } from './membership.ts'
import { begunKey, Meta, noteKey, roundKey, schemaKey, sealKey } from './meta.ts'
import { checkName, Names } from './names.ts'
import { type KafkaCodec, type KafkaLogOptions, MAX_MESSAGE_BYTES } from './options.ts'
import { ORIGIN_HEADER, originHeader, seenText } from './origin.ts'
import { Reader, type ReaderParts } from './reader.ts'
import { type Member, NO_MEMBER } from './requests.ts'
import { retrying, within } from './retrying.ts'
import { type ScanOptions, scanTopic } from './scan.ts'
import { ensureTopics } from './topics.ts'
import { Transactions } from './transactions.ts'
import { Turns } from './turns.ts'
import { Undecided } from './undecided.ts'

/** Requests are kept well under the brokers' limit of 100 MB. */
const REQUEST_BYTES = 32 << 20

/**
 * Opens the log of a run. Errors: LOG_UNAVAILABLE (no broker, no permission, missing topics that may not be made),
 * LOG_MISMATCH (topics with other settings), CONFIG_INVALID (names that cannot be).
 */
export async function openKafkaLog(options: KafkaLogOptions): Promise<Log> {
  const { prefix = 'grasp', run, partitions = {}, replication = -1, readOnly = false } = options
  const { maxMessageBytes = MAX_MESSAGE_BYTES, create = !readOnly } = options
  const names = new Names(prefix, run)
  const client = new Client(options)
  await client.firstContact()
  const cluster = client.cluster()
  const admin = client.admin()
  let log: KafkaLog | undefined
  try {
    await Promise.all([cluster.connect(), admin.connect()])
    const settings = { partitions, replication, maxMessageBytes, retentionHours: options.retentionHours }
    const counts = await ensureTopics(admin, names, settings, { create: create && !readOnly })
    await cluster.addMultipleTargetTopics([...TOPICS.map(topic => names.topic(topic)), names.meta])
    const meta = new Meta(cluster, names.meta)
    await meta.refresh()
    const codec: KafkaCodec = options.codec ?? createCodec(meta)
    const shared = new ClusterLog(cluster, admin, names, meta, counts)
    log = new KafkaLog(client, shared, codec, { maxMessageBytes, readOnly })
    if (!readOnly) await log.publishSchemas()
    return log
  } catch (cause) {
    await log?.close()
    await Promise.allSettled([cluster.disconnect(), admin.disconnect(), client.close()])
    throw kafkaFault(client.brokers, 'open', cause)
  }
}

interface Limits {
  readonly maxMessageBytes: number
  readonly readOnly: boolean
}

class KafkaLog implements Log {
  readonly contiguous = false
  readonly #client: Client
  readonly #log: ClusterLog
  readonly #admin: Admin
  readonly #codec: KafkaCodec
  readonly #limits: Limits
  readonly #batches: BatchLimits
  readonly #appender: Appender
  readonly #transactions: Transactions
  readonly #parts: ReaderParts
  readonly #turns = new Turns()
  readonly #readers = new Set<Reader>()
  readonly #writing = new Set<Promise<unknown>>()
  /** Topic/group of which this process was a member and is none any more. */
  readonly #departed = new Set<string>()
  /** Of transactions that consume nothing. */
  readonly #ownId: string
  #closing: Promise<void> | undefined

  constructor(client: Client, log: ClusterLog, codec: KafkaCodec, limits: Limits) {
    this.#client = client
    this.#log = log
    this.#admin = log.admin
    this.#codec = codec
    this.#limits = limits
    this.#batches = { partitionBytes: limits.maxMessageBytes, requestBytes: REQUEST_BYTES }
    this.#appender = new Appender(client, this.#batches)
    this.#transactions = new Transactions(client, this.#batches)
    const began = this.#began.bind(this)
    this.#parts = { client, log, codec, transactions: this.#transactions, began }
    this.#ownId = `${log.names.group('writer')}.${crypto.randomUUID()}`
  }

  /** Keeps the present schemas where readers of later versions look for them. */
  async publishSchemas(): Promise<void> {
    const { meta } = this.#log
    const missing = [...this.#codec.schemas.values()].filter(({ fingerprint }) => !meta.get(fingerprint))
    await this.#writeMeta(missing.map(({ fingerprint, json }) => [schemaKey(fingerprint), json]))
  }

  async topics(): Promise<TopicInfo[]> {
    return this.#look(async () => {
      await this.#log.meta.refresh()
      return Promise.all(
        TOPICS.map(async topic => ({
          topic,
          partitions: this.#log.partitions(topic),
          ends: await this.#log.ends(topic),
          sealed: (await this.#log.sealedEnds(topic)) !== undefined,
        })),
      )
    })
  }

  async append(outputs: readonly Output[], { after, notes }: AppendOptions = {}): Promise<Place[]> {
    return this.#write(async () => {
      const prepared = await this.#prepare(outputs)
      if (notes) return this.#noted(await this.#appendNoting(prepared, notes))
      if (after) return this.#noted(await this.#appendAfter(prepared, after))
      if (prepared.length === 0) return []
      if (isWhole(prepared, this.#batches)) return this.#noted(await this.#appender.append(prepared))
      const takenOver = (cause: unknown) => kafkaFault(this.#client.brokers, 'write to', cause)
      const work = { transactionalId: this.#ownId, outputs: prepared, takenOver }
      return this.#noted(await this.#transactions.run({ ...work, isIn: places => this.#isWritten(places) }))
    })
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
    return this.#transactions.run({
      transactionalId: names.appenderId(topic),
      outputs,
      ready,
      isIn: places => this.#isWritten(places),
      takenOver: cause => anotherWriter(topic, cause),
    })
  }

  /** As above: all that change notes together with records share an id, and look at the notes when it is theirs. */
  async #appendNoting(outputs: readonly Prepared[], notes: AppendNoting['notes']): Promise<Place[]> {
    for (const { name } of notes) checkName('note', name)
    const { meta, names } = this.#log
    let at = 0
    const places = await this.#transactions.run({
      transactionalId: names.noterId,
      outputs,
      ready: async () => {
        await meta.refresh()
        const changed = notes.find(({ name, from }) => meta.note(name) !== from)
        if (changed) throw noteChanged(changed.name)
      },
      last: async went =>
        this.#prepareMeta(notes.map(({ name, to }) => [noteKey(name), JSON.stringify(to(went))])),
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

  read<T extends Topic>(topic: T, options: ReadOptions): Observable<Delivery<T>> {
    // A member of the group would take partitions from those who work, and could commit nothing.
    if (this.#limits.readOnly) return throwError(() => this.#readOnlyError())
    return new Observable<Delivery<T>>(subscriber => {
      let reader: Reader | undefined
      this.#startReader(topic, options, subscriber).then(
        started => {
          reader = started
          if (subscriber.closed) reader?.close()
        },
        cause => subscriber.error(kafkaFault(this.#client.brokers, 'read', cause)),
      )
      return () => reader?.close()
    })
  }

  async commit(request: CommitRequest): Promise<Place[]> {
    const { group, positions } = request
    this.#log.names.group(group)
    return this.#write(() =>
      this.#turns.take(group, async () => {
        const readers = [...this.#readers].filter(
          reader => reader.group === group && positions.some(({ topic }) => topic === reader.topic),
        )
        const holds = await Promise.allSettled(readers.map(reader => reader.hold()))
        try {
          for (const hold of holds) if (hold.status === 'rejected') throw hold.reason
          return await this.#commit(request, readers)
        } finally {
          for (const [i, { status }] of holds.entries()) if (status === 'fulfilled') readers[i]!.free()
        }
      }),
    )
  }

  async committed(topic: Topic, group: string): Promise<number[]> {
    return this.#look(async () => (await this.#log.positions(group, topic)).map(({ offset }) => offset))
  }

  async seek(topic: Topic, group: string, offsets: readonly number[]): Promise<void> {
    this.#log.names.group(group)
    await this.#write(async () => {
      const partitions = this.#log.partitions(topic)
      if (offsets.length !== partitions) {
        const message = `seek in ${topic}: it has ${partitions} partition(s), got ${offsets.length} offset(s)`
        throw new GraspError('LOG_MISMATCH', message)
      }
      await this.#checkRange(offsets.map((offset, partition) => ({ topic, partition, offset })))
      await this.#endLingering([...this.#readers].filter(reader => reader.group === group))
      const workers = await this.#workers(group)
      if (workers.length > 0) {
        throw new GraspError(
          'GROUP_ACTIVE',
          `group ${group} is at work (${workers.join(', ')}); stop it first, then set its positions`,
        )
      }
      // What is made again of the same records is no repetition.
      const round = this.#log.meta.round(group, topic) + 1
      await this.#writeMeta([[roundKey(group, topic), JSON.stringify(round)]])
      const beginnings = await this.#log.beginnings(topic)
      const stored = offsets.map((offset, p) => Math.max(offset, beginnings.get(p)!))
      await this.#log.storePositions(group, topic, stored)
      for (const [p, offset] of stored.entries()) this.#log.setPosition(group, topic, p, offset)
      await this.#began(group, topic, [...stored.keys()])
    })
  }

  async *scan<T extends Topic>(topic: T, options: ScanOptions = {}): AsyncGenerator<Delivery<T>> {
    try {
      this.#checkOpen()
      yield* scanTopic(this.#log, this.#codec, topic, options)
    } catch (cause) {
      throw this.#closing ? this.#closedError() : kafkaFault(this.#client.brokers, 'read', cause)
    }
  }

  async seal(topics: readonly Topic[]): Promise<void> {
    await this.#write(async () => this.#writeMeta(await this.#seals(topics)))
  }

  async unseal(topics: readonly Topic[]): Promise<void> {
    await this.#write(() => this.#writeMeta(topics.map(topic => [sealKey(topic), 'null'])))
  }

  async workers(group: string): Promise<string[]> {
    this.#log.names.group(group)
    return this.#look(() => this.#workers(group))
  }

  async decode<T extends Topic>(topic: T, payload: Uint8Array): Promise<Records[T]> {
    return this.#look(async () => {
      if (!this.#codec.isCurrent(topic, payload)) {
        if (this.#codec.prepareToDecode) await this.#codec.prepareToDecode(topic, payload)
        else await this.#log.meta.refresh()
      }
      return this.#codec.decode(topic, payload)
    })
  }

  async note(name: string): Promise<string | undefined> {
    return this.#look(async () => {
      await this.#log.meta.refresh()
      return this.#log.meta.note(name)
    })
  }

  async setNote(name: string, value: string): Promise<void> {
    checkName('note', name)
    await this.#write(() => this.#writeMeta([[noteKey(name), JSON.stringify(value)]]))
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#codec.close?.()
    for (const reader of this.#readers) reader.fail(this.#closedError())
    const work = async () => {
      await Promise.allSettled(this.#writing)
      for (const reader of this.#readers) reader.leave()
      await Promise.all([...this.#readers].map(reader => reader.finished))
      await Promise.all([this.#appender.close(), this.#transactions.close()])
      await Promise.all([this.#log.cluster.disconnect(), this.#admin.disconnect()])
    }
    // Without a broker to tell, sessions and transactions end by their timeouts.
    await within(this.#client.timeouts.close, work())
    await within(this.#client.timeouts.close, this.#client.close())
  }

  async #startReader<T extends Topic>(
    topic: T,
    options: ReadOptions,
    subscriber: Subscriber<Delivery<T>>,
  ): Promise<Reader | undefined> {
    this.#checkOpen()
    this.#log.names.group(options.group)
    // A commit under way may move the positions that reading is to start from.
    await this.#turns.settled(options.group)
    const others = [...this.#readers].filter(({ group }) => group === options.group)
    const before = others.find(each => each.topic === topic && each.leaving)
    await this.#endLingering(others.filter(each => each !== before))
    if (subscriber.closed) return undefined
    this.#checkOpen()
    const estate = await before?.succeed()
    const reader = new Reader(this.#parts, topic, options, subscriber, estate) as unknown as Reader
    this.#readers.add(reader)
    this.#departed.delete(`${topic}/${options.group}`)
    reader.finished.then(() => {
      this.#readers.delete(reader)
      const stays = [...this.#readers].some(each => each.topic === topic && each.group === options.group)
      if (!stays) this.#departed.add(`${topic}/${options.group}`)
    })
    if (this.#closing) reader.leave()
    return reader
  }

  /** Members of this process that came to their end and only wait for their records to be committed. */
  async #endLingering(readers: Iterable<Reader>): Promise<void> {
    const lingering = [...readers].filter(reader => reader.ended)
    for (const reader of lingering) reader.leave()
    await Promise.all(lingering.map(reader => reader.finished))
  }

  async #commit(request: CommitRequest, readers: readonly Reader[]): Promise<Place[]> {
    const { group, outputs, origins, positions, seal = [] } = request
    const { names } = this.#log
    const prepared = await this.#prepare(outputs, origins && { group, origins })
    await this.#checkPositions(group, positions, readers)
    const reached = positions.map(position => this.#reached(position, readers))
    const first = [...positions].sort((a, b) => a.partition - b.partition)[0]
    const places = await this.#transactions.run({
      transactionalId: first ? names.transactionalId(group, first.topic, first.partition) : this.#ownId,
      outputs: prepared,
      ...(first && {
        consumed: {
          groupId: names.group(group),
          topics: this.#offsetsOf(reached, readers),
          member: () => memberFor(first, readers),
        },
      }),
      last: async () => this.#prepareMeta(await this.#seals(seal)),
      isIn: written => this.#isIn(group, written, reached),
      confirm: async () => {
        for (const reader of readers) await reader.holdAnew()
        await this.#checkPositions(group, positions, readers)
      },
      takenOver: cause => takenOver(group, cause),
    })
    for (const { topic, partition, offset } of reached) this.#log.setPosition(group, topic, partition, offset)
    for (const reader of readers) reader.settled(reached)
    return this.#noted(places)
  }

  /** Errors: LOG_MISMATCH for a position beyond the log, PARTITION_LOST for one that another member works on. */
  async #checkPositions(
    group: string,
    positions: readonly Position[],
    readers: readonly Reader[],
  ): Promise<void> {
    const unknown = positions.filter(({ topic, partition, offset }) => {
      const cursor = readers.find(reader => reader.topic === topic)?.lane(partition)?.cursor
      return cursor === undefined || !Number.isInteger(offset) || offset < 0 || offset > cursor
    })
    if (unknown.length > 0) await this.#checkRange(unknown)
    for (const { topic, partition, offset } of positions) {
      const own = readers.filter(reader => reader.topic === topic)
      if (own.length === 0 && this.#departed.has(`${topic}/${group}`)) throw departed(topic, group)
      // A partition that went away and came back was worked on by another member meanwhile.
      const mine = own.some(reader => offset > (reader.lane(partition)?.done ?? Number.POSITIVE_INFINITY))
      if (own.length === 0 || mine) continue
      throw new GraspError(
        'PARTITION_LOST',
        `another member of group ${group} worked on ${topic}/${partition} up to offset ${offset} or works on it ` +
          'now; what this one did since is not committed',
      )
    }
  }

  async #checkRange(positions: readonly Position[]): Promise<void> {
    for (const topic of new Set(positions.map(position => position.topic))) {
      const ends = await this.#log.ends(topic)
      for (const { topic: own, partition, offset } of positions) {
        const valid = Number.isInteger(offset) && offset >= 0 && offset <= (ends[partition] ?? -1)
        if (own === topic && !valid) throw noSuchPosition(topic, partition, offset, ends[partition] ?? 0)
      }
    }
  }

  #reached(position: Position, readers: readonly Reader[]): Position {
    const lane = readers.find(reader => reader.topic === position.topic)?.lane(position.partition)
    return lane ? { ...position, offset: lane.reach(position.offset) } : position
  }

  #offsetsOf(positions: readonly Position[], readers: readonly Reader[]): Offsets['topics'] {
    return [...new Set(positions.map(({ topic }) => topic))].map(topic => ({
      topic: this.#log.names.topic(topic),
      partitions: positions
        .filter(position => position.topic === topic)
        .map(({ partition, offset }) => {
          const lane = readers.find(reader => reader.topic === topic)?.lane(partition)
          const metadata = lane ? seenText(lane.seenBelow(offset)) : ''
          return { partition, offset: String(offset), metadata }
        }),
    }))
  }

  /** Whether a transaction with these outputs and positions is in; nothing of it is open any more. */
  async #isIn(group: string, places: readonly Place[], positions: readonly Position[]): Promise<boolean> {
    if (places.length > 0 || positions.length === 0) return this.#isWritten(places)
    const stored = await this.#log.positions(group, positions[0]!.topic)
    return positions.every(({ partition, offset }) => stored[partition]!.offset === offset)
  }

  async #isWritten(places: readonly Place[]): Promise<boolean> {
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

  async #seals(topics: readonly Topic[]): Promise<[string, string][]> {
    return Promise.all(
      topics.map(async topic => {
        const ends = await this.#log.ends(topic, 'written')
        return [sealKey(topic), JSON.stringify(ends)] satisfies [string, string]
      }),
    )
  }

  async #workers(group: string): Promise<string[]> {
    const { groups } = await this.#admin.describeGroups([this.#log.names.group(group)])
    return groups.flatMap(({ members }) => members.map(workerOf))
  }

  /** Errors: RECORD_INVALID for a record that its topic does not take, or that is too large. */
  async #prepare(
    outputs: readonly Output[],
    made?: { readonly group: string; readonly origins: readonly Origin[] },
  ): Promise<Prepared[]> {
    await this.#codec.prepareToEncode?.([...new Set(outputs.map(({ topic }) => topic))])
    const rounds = new Map<Topic, number>()
    const headersOf = (origin: Origin, group: string) => {
      const round = rounds.get(origin.topic) ?? this.#log.meta.round(group, origin.topic)
      rounds.set(origin.topic, round)
      return { [ORIGIN_HEADER]: originHeader(origin, round) }
    }
    return outputs.map(({ topic, key, value }, i) => {
      const encoded = this.#codec.encode(topic, value, allocate)
      const partition = partitionOf(key, this.#log.partitions(topic))
      const origin = made?.origins[i]
      const bytes = encoded.length + Buffer.byteLength(key) + OVERHEAD
      if (bytes + OVERHEAD > this.#limits.maxMessageBytes) throw this.#tooLarge(topic, key, encoded.length)
      const body = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.length)
      const message = { key, value: body, partition, headers: origin ? headersOf(origin, made!.group) : {} }
      return { topic, name: this.#log.names.topic(topic), partition, bytes, message }
    })
  }

  #tooLarge(topic: Topic, key: string, bytes: number): GraspError {
    return new GraspError(
      'RECORD_INVALID',
      `a record of ${topic} (key ${JSON.stringify(key.slice(0, 80))}) has ${bytes} bytes, more than the log takes ` +
        `(${this.#limits.maxMessageBytes}): raise log.maxMessageBytes and the topic's max.message.bytes, or cut it smaller`,
    )
  }

  #prepareMeta(entries: readonly (readonly [key: string, json: string])[]): Prepared[] {
    return entries.map(([key, json]) => ({
      topic: 'meta' as Topic,
      name: this.#log.names.meta,
      partition: 0,
      bytes: key.length + json.length + OVERHEAD,
      message: { key, value: json, partition: 0 },
    }))
  }

  /** Notes that the group has positions there. */
  async #began(group: string, topic: Topic, partitions: readonly number[]): Promise<void> {
    const { meta } = this.#log
    const unknown = partitions.filter(p => !meta.hasBegun(group, topic, p))
    await this.#writeMeta(unknown.map(p => [begunKey(group, topic, p), 'true']))
  }

  async #writeMeta(entries: readonly (readonly [key: string, json: string])[]): Promise<void> {
    if (entries.length === 0) return
    const places = await this.#appender.append(this.#prepareMeta(entries))
    this.#log.meta.wrote(places.at(-1)!.offset)
    await this.#log.meta.refresh()
  }

  #noted(places: Place[]): Place[] {
    for (const { topic, partition, offset } of places) this.#log.wrote(topic, partition, offset)
    return places
  }

  async #look<T>(work: () => Promise<T>): Promise<T> {
    try {
      this.#checkOpen()
      return await work()
    } catch (cause) {
      throw this.#closing ? this.#closedError() : kafkaFault(this.#client.brokers, 'read', cause)
    }
  }

  async #write<T>(work: () => Promise<T>): Promise<T> {
    this.#checkOpen()
    if (this.#limits.readOnly) {
      throw this.#readOnlyError()
    }
    const writing = work()
    this.#writing.add(writing)
    try {
      return await writing
    } catch (cause) {
      throw kafkaFault(this.#client.brokers, 'write to', cause)
    } finally {
      this.#writing.delete(writing)
    }
  }

  #readOnlyError(): GraspError {
    return new GraspError('LOG_UNAVAILABLE', 'the log was opened for looking only')
  }

  #checkOpen(): void {
    if (this.#closing) throw this.#closedError()
  }

  #closedError(): GraspError {
    return new GraspError('LOG_UNAVAILABLE', `the Kafka log on ${this.#client.brokers.join(', ')} was closed`)
  }
}

function takenOver(group: string, cause: unknown): GraspError {
  return new GraspError(
    'PARTITION_LOST',
    `another process works as group ${group} and took over what this one was working on; ` +
      'what this one did since is not committed',
    { cause },
  )
}

/** In whose name a position is committed. */
function memberFor({ topic, partition }: Position, readers: readonly Reader[]): Member {
  const own = readers.filter(reader => reader.topic === topic)
  return (own.find(reader => reader.lane(partition)) ?? own[0])?.member ?? NO_MEMBER
}

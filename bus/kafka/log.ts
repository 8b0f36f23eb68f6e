/** The log on Apache Kafka, shared by the processes of many machines. */
import type { Admin } from 'kafkajs'
import { Observable, throwError } from 'rxjs'
import { GraspError } from '../../errors/grasp-error.ts'
import { type Records, TOPICS, type Topic } from '../../schemas/types.ts'
import { checkName } from '../check-name.ts'
import { createCodec } from '../codec.ts'
import { groupActive } from '../group-active.ts'
import type {
  AppendOptions,
  CommitRequest,
  Delivery,
  Log,
  Output,
  Place,
  ReadOptions,
  ScanOptions,
  TopicInfo,
} from '../port.ts'
import { Client } from './client.ts'
import { ClusterLog } from './cluster-log.ts'
import { Commits } from './commits.ts'
import { kafkaFault } from './faults.ts'
import { workerOf } from './membership.ts'
import { Meta, noteKey, roundKey, schemaKey, sealKey } from './meta.ts'
import { Names } from './names.ts'
import { type KafkaCodec, type KafkaLogOptions, MAX_MESSAGE_BYTES } from './options.ts'
import { Preparation } from './preparation.ts'
import type { Reader, ReaderParts } from './reader.ts'
import { Readers } from './readers.ts'
import { within } from './retrying.ts'
import { scanTopic } from './scan.ts'
import { ensureTopics } from './topics.ts'
import { Turns } from './turns.ts'
import { Writer } from './writer.ts'

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
  readonly #writer: Writer
  readonly #readers: Readers
  readonly #commits: Commits
  readonly #writing = new Set<Promise<unknown>>()
  #closing: Promise<void> | undefined

  constructor(client: Client, log: ClusterLog, codec: KafkaCodec, limits: Limits) {
    this.#client = client
    this.#log = log
    this.#admin = log.admin
    this.#codec = codec
    this.#limits = limits
    const preparation = new Preparation(log, codec, limits.maxMessageBytes)
    const writer = new Writer(client, log, preparation, limits.maxMessageBytes)
    const began: ReaderParts['began'] = (group, topic, partitions) => writer.began(group, topic, partitions)
    const turns = new Turns()
    this.#writer = writer
    this.#readers = new Readers({ client, log, codec, transactions: writer.transactions, began }, turns)
    this.#commits = new Commits(log, preparation, writer, this.#readers, turns)
  }

  /** Keeps the present schemas where readers of later versions look for them. */
  async publishSchemas(): Promise<void> {
    const { meta } = this.#log
    const missing = [...this.#codec.schemas.values()].filter(({ fingerprint }) => !meta.get(fingerprint))
    await this.#writer.writeMeta(missing.map(({ fingerprint, json }) => [schemaKey(fingerprint), json]))
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

  async append(outputs: readonly Output[], options: AppendOptions = {}): Promise<Place[]> {
    return this.#write(() => this.#writer.append(outputs, options))
  }

  read<T extends Topic>(topic: T, options: ReadOptions): Observable<Delivery<T>> {
    // A member of the group would take partitions from those who work, and could commit nothing.
    if (this.#limits.readOnly) return throwError(() => this.#readOnlyError())
    return new Observable<Delivery<T>>(subscriber => {
      this.#log.names.group(options.group)
      let reader: Reader | undefined
      this.#readers.start(topic, options, subscriber).then(
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
    this.#log.names.group(request.group)
    return this.#write(() => this.#commits.commit(request))
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
      await this.#commits.checkRange(offsets.map((offset, partition) => ({ topic, partition, offset })))
      await this.#readers.endLingering(group)
      const workers = await this.#workers(group)
      if (workers.length > 0) throw groupActive(group, workers)
      // What is made again of the same records is no repetition.
      const round = this.#log.meta.round(group, topic) + 1
      await this.#writer.writeMeta([[roundKey(group, topic), JSON.stringify(round)]])
      const beginnings = await this.#log.beginnings(topic)
      const stored = offsets.map((offset, p) => Math.max(offset, beginnings.get(p)!))
      await this.#log.storePositions(group, topic, stored)
      for (const [p, offset] of stored.entries()) this.#log.setPosition(group, topic, p, offset)
      await this.#writer.began(group, topic, [...stored.keys()])
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
    await this.#write(async () => this.#writer.writeMeta(await this.#writer.seals(topics)))
  }

  async unseal(topics: readonly Topic[]): Promise<void> {
    await this.#write(() => this.#writer.writeMeta(topics.map(topic => [sealKey(topic), 'null'])))
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
    await this.#write(() => this.#writer.writeMeta([[noteKey(name), JSON.stringify(value)]]))
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#codec.close?.()
    this.#readers.fail(this.#closedError())
    const work = async () => {
      await Promise.allSettled(this.#writing)
      await this.#readers.leave()
      await this.#writer.close()
      await Promise.all([this.#log.cluster.disconnect(), this.#admin.disconnect()])
    }
    // Without a broker to tell, sessions and transactions end by their timeouts.
    await within(this.#client.timeouts.close, work())
    await within(this.#client.timeouts.close, this.#client.close())
  }

  async #workers(group: string): Promise<string[]> {
    const { groups } = await this.#admin.describeGroups([this.#log.names.group(group)])
    return groups.flatMap(({ members }) => members.map(workerOf))
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

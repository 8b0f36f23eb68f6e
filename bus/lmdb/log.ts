/** The log on LMDB: embedded, durable, shared by the processes of one machine. */
import { join } from 'node:path'
import { Observable, type Subscriber } from 'rxjs'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Records, Topic } from '../../schemas/types.ts'
import { checkName } from '../check-name.ts'
import { type Codec, createCodec } from '../codec.ts'
import { endsMoved } from '../ends-moved.ts'
import { groupActive } from '../group-active.ts'
import { noteChanged } from '../note-changed.ts'
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
import { type Environment, openEnvironment } from './environment.ts'
import { logFault } from './faults.ts'
import { GroupCommit, type Job } from './group-commit.ts'
import { Positions } from './positions.ts'
import { appendAll, prepare, sizeOf } from './preparation.ts'
import { Reader } from './reader.ts'
import { scanTopic } from './scan.ts'
import { Store } from './store.ts'
import { WakeUp } from './wake-up.ts'
import { Workers } from './workers.ts'

export interface LmdbLogOptions {
  /** The folder of all runs (`log.path`). */
  readonly path: string
  /** The run; it gets a folder of its own below `path`. */
  readonly run: string
  /** How many partitions a new topic gets: 1 unless told. A topic that exists keeps its own. */
  readonly partitions?: Partial<Record<Topic, number>>
  /** Only look: nothing is created, every writing method fails. */
  readonly readOnly?: boolean
}

/**
 * Opens the log of a run, creating it unless `readOnly`. Several processes may have it open at once.
 *
 * Errors: LOG_UNAVAILABLE (no permission, a file in the way, disk full, nothing there to read), LOG_MISMATCH
 * (another format version or other partition counts), CONFIG_INVALID (a run name or partition count that
 * cannot be).
 */
export async function openLmdbLog(options: LmdbLogOptions): Promise<Log> {
  const { path, run, partitions = {}, readOnly = false } = options
  if (!/^[\p{L}\p{N}_][\p{L}\p{N}_.-]{0,99}$/u.test(run)) {
    throw new GraspError(
      'CONFIG_INVALID',
      `run: expected a name of letters, digits, '_', '-' and '.', at most 100 long, got ${JSON.stringify(run)}`,
    )
  }
  // The codec looks up the schemas of older records in the log that it serves.
  const codec = createCodec({ get: fingerprint => store.get(fingerprint) })
  const environment = openEnvironment({ path: join(path, run), partitions, readOnly, schemas: codec.schemas })
  const store = new Store(environment)
  return new LmdbLog(environment, store, codec, readOnly)
}

class LmdbLog implements Log {
  readonly contiguous = true
  readonly #environment: Environment
  readonly #store: Store
  readonly #codec: Codec
  readonly #readOnly: boolean
  readonly #writes: GroupCommit
  readonly #wakeUp = new WakeUp()
  readonly #readers = new Set<Reader<Topic>>()
  readonly #positions: Positions
  readonly #workers: Workers
  #closing: Promise<void> | undefined

  constructor(environment: Environment, store: Store, codec: Codec, readOnly: boolean) {
    this.#environment = environment
    this.#store = store
    this.#codec = codec
    this.#readOnly = readOnly
    this.#positions = new Positions(store)
    this.#workers = new Workers(environment.path)
    this.#writes = new GroupCommit(environment.root, committed => {
      if (committed) this.#wakeUp.all()
      else this.#positions.forget()
    })
  }

  async topics(): Promise<TopicInfo[]> {
    return this.#look(() => this.#store.topics())
  }

  async append(outputs: readonly Output[], options: AppendOptions = {}): Promise<Place[]> {
    const { after, notes = [] } = options
    for (const { name } of notes) checkName('note', name)
    const prepared = prepare(this.#store, this.#codec, outputs)
    return this.#write({
      bytes: sizeOf(prepared),
      check: () => {
        for (const { name, from } of notes) if (this.#store.note(name) !== from) throw noteChanged(name)
        if (after === undefined) return
        const { topic, ends } = after
        const now = this.#store.ends(topic)
        if (now.every((end, partition) => end === ends[partition])) return
        throw endsMoved(topic, ends, now)
      },
      work: () => {
        const places = appendAll(this.#store, prepared)
        for (const { name, to } of notes) this.#store.setNote(name, to(places))
        return places
      },
    })
  }

  read<T extends Topic>(topic: T, options: ReadOptions): Observable<Delivery<T>> {
    return new Observable<Delivery<T>>(subscriber => {
      let close = () => {}
      const start = () => {
        if (subscriber.closed) return
        try {
          close = this.#startReader(topic, options, subscriber)
        } catch (cause) {
          subscriber.error(logFault(this.#store.path, 'read', cause))
        }
      }
      // A commit under way may move the positions that reading is to start from.
      const pending = this.#writes.pending
      if (pending) pending.then(start)
      else start()
      return () => close()
    })
  }

  async commit(request: CommitRequest): Promise<Place[]> {
    const { group, outputs, positions, seal = [] } = request
    checkName('group', group)
    const prepared = prepare(this.#store, this.#codec, outputs)
    const places = await this.#write({
      bytes: sizeOf(prepared),
      check: () => {
        for (const position of positions) this.#positions.check(group, position)
        for (const topic of seal) this.#store.partitions(topic)
      },
      work: () => {
        const appended = appendAll(this.#store, prepared)
        for (const position of positions) this.#positions.set(group, position)
        for (const topic of seal) this.#store.seal(topic)
        return appended
      },
    })
    for (const reader of this.#readers) reader.settled(group, positions)
    return places
  }

  async committed(topic: Topic, group: string): Promise<number[]> {
    return this.#look(() => this.#store.ends(topic).map((_, p) => this.#store.position(topic, group, p)))
  }

  async seek(topic: Topic, group: string, offsets: readonly number[]): Promise<void> {
    checkName('group', group)
    const workers = this.#look(() => this.#workers.of(group))
    if (workers.length > 0) throw groupActive(group, workers)
    const positions = offsets.map((offset, partition) => ({ topic, partition, offset }))
    await this.#write({
      check: () => {
        const partitions = this.#store.partitions(topic)
        for (const position of positions) this.#positions.checkRange(position)
        if (offsets.length === partitions) return
        const message = `seek in ${topic}: it has ${partitions} partition(s), got ${offsets.length} offset(s)`
        throw new GraspError('LOG_MISMATCH', message)
      },
      work: () => {
        for (const position of positions) this.#positions.set(group, position)
      },
    })
  }

  async *scan<T extends Topic>(topic: T, options: ScanOptions = {}): AsyncGenerator<Delivery<T>> {
    try {
      this.#checkOpen()
      yield* scanTopic(this.#store, this.#codec, topic, options)
    } catch (cause) {
      throw this.#closing ? this.#closedError() : logFault(this.#store.path, 'read', cause)
    }
  }

  async seal(topics: readonly Topic[]): Promise<void> {
    await this.#write({
      check: () => {
        for (const topic of topics) this.#store.partitions(topic)
      },
      work: () => {
        for (const topic of topics) this.#store.seal(topic)
      },
    })
  }

  async unseal(topics: readonly Topic[]): Promise<void> {
    await this.#write({
      work: () => {
        for (const topic of topics) this.#store.unseal(topic)
      },
    })
  }

  async workers(group: string): Promise<string[]> {
    checkName('group', group)
    return this.#look(() => this.#workers.of(group))
  }

  async decode<T extends Topic>(topic: T, payload: Uint8Array): Promise<Records[T]> {
    return this.#look(() => this.#codec.decode(topic, payload))
  }

  async note(name: string): Promise<string | undefined> {
    return this.#look(() => this.#store.note(name))
  }

  async setNote(name: string, value: string): Promise<void> {
    checkName('note', name)
    await this.#write({ work: () => this.#store.setNote(name, value) })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    for (const reader of this.#readers) reader.fail(this.#closedError())
    await this.#writes.pending
    await this.#environment.root.close()
  }

  #startReader<T extends Topic>(
    topic: T,
    options: ReadOptions,
    subscriber: Subscriber<Delivery<T>>,
  ): () => void {
    this.#checkOpen()
    checkName('group', options.group)
    const parts = { store: this.#store, codec: this.#codec, wakeUp: this.#wakeUp }
    // Before the positions are read. A log that is only looked at commits nothing, so nobody needs to know.
    const leave = this.#readOnly ? () => {} : this.#workers.enter(options.group)
    options.onJoined?.()
    let reader: Reader<Topic>
    try {
      reader = new Reader(parts, topic, options, subscriber) as unknown as Reader<Topic>
    } catch (error) {
      leave()
      throw error
    }
    this.#positions.watch(topic, options.group)
    this.#readers.add(reader)
    return () => {
      reader.close()
      this.#readers.delete(reader)
      leave()
    }
  }

  #look<T>(work: () => T): T {
    try {
      this.#checkOpen()
      this.#store.refresh()
      return work()
    } catch (cause) {
      throw logFault(this.#store.path, 'read', cause)
    }
  }

  async #write<T>(job: Job<T>): Promise<T> {
    this.#checkOpen()
    if (this.#readOnly) {
      throw new GraspError('LOG_UNAVAILABLE', `the log in ${this.#store.path} was opened for reading only`)
    }
    try {
      return await this.#writes.run(job)
    } catch (cause) {
      throw logFault(this.#store.path, 'write to', cause)
    }
  }

  #checkOpen(): void {
    if (this.#closing) throw this.#closedError()
  }

  #closedError(): GraspError {
    return new GraspError('LOG_UNAVAILABLE', `the log in ${this.#store.path} was closed`)
  }
}

/** What stands where in the environment: typed access to the log's state, inside or outside a transaction. */
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import type { SchemaStore } from '../codec.ts'
import type { Place, TopicInfo } from '../port.ts'
import { payloadOf, stampEntry, timestampOf } from './entry.ts'
import type { Environment, RecordDatabase } from './environment.ts'

export class Store implements SchemaStore {
  readonly #environment: Environment

  constructor(environment: Environment) {
    this.#environment = environment
  }

  get path(): string {
    return this.#environment.path
  }

  /** Makes reads see what was committed last, by whichever process. */
  refresh(): void {
    this.#environment.root.resetReadTxn()
  }

  /** Errors: LOG_MISMATCH for a topic that a log opened for reading only lacks. */
  partitions(topic: Topic): number {
    return this.#databases(topic).length
  }

  topics(): TopicInfo[] {
    return [...this.#environment.records].map(([topic, databases]) => ({
      topic,
      partitions: databases.length,
      ends: this.ends(topic),
      sealed: this.sealed(topic),
    }))
  }

  ends(topic: Topic): number[] {
    return this.#databases(topic).map((_, partition) => this.#end(topic, partition)[0])
  }

  end(topic: Topic, partition: number): number {
    return this.#end(topic, partition)[0]
  }

  /**
   * Appends within a transaction and gives the offset of the first. Timestamps never fall within a partition,
   * so that a time can be looked up by halving.
   */
  append(topic: Topic, partition: number, entries: readonly Buffer[], now: number): number {
    const [first, last] = this.#end(topic, partition)
    const timestamp = Math.max(now, last)
    const database = this.#database(topic, partition)
    for (const [i, entry] of entries.entries()) {
      stampEntry(entry, timestamp)
      // Its typings say void, but it tells whether the key came after all others.
      const placed: unknown = database.putSync(first + i, entry, { append: true })
      if (placed === true) continue
      throw new Error(`offset ${first + i} of ${topic}/${partition} is taken: the log is damaged`)
    }
    this.#put(['end', topic, partition], [first + entries.length, timestamp])
    return first
  }

  /** The entry at an offset below the end; its memory holds only until the next read of the log. */
  entry(topic: Topic, partition: number, offset: number): Buffer {
    const bytes: Uint8Array | undefined = this.#database(topic, partition).getBinaryFast(offset)
    if (!bytes) {
      const message = `the log in ${this.path} is damaged: ${topic}/${partition} lacks offset ${offset}`
      throw new GraspError('LOG_UNAVAILABLE', message)
    }
    // Values above 16 MiB come as a plain view.
    return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  /** The encoded record at a place, in memory of its own. */
  payload({ topic, partition, offset }: Place): Uint8Array {
    return new Uint8Array(payloadOf(this.entry(topic, partition, offset)))
  }

  timestamp(topic: Topic, partition: number, offset: number): number {
    return timestampOf(this.entry(topic, partition, offset))
  }

  position(topic: Topic, group: string, partition: number): number {
    return (this.#get(['position', group, topic, partition]) as number | undefined) ?? 0
  }

  setPosition(topic: Topic, group: string, partition: number, offset: number): void {
    this.#put(['position', group, topic, partition], offset)
  }

  /** Sealed at the ends as they were; appending moves the ends, and so opens the topic again. */
  sealed(topic: Topic): boolean {
    const seal = this.#get(['seal', topic]) as number[] | undefined
    return seal?.every((end, partition) => end === this.end(topic, partition)) ?? false
  }

  seal(topic: Topic): void {
    this.#put(['seal', topic], this.ends(topic))
  }

  unseal(topic: Topic): void {
    this.#environment.meta.removeSync(['seal', topic])
  }

  note(name: string): string | undefined {
    return this.#get(['note', name]) as string | undefined
  }

  setNote(name: string, value: string): void {
    this.#put(['note', name], value)
  }

  /** The schema with this fingerprint, as JSON. */
  get(fingerprint: string): string | undefined {
    return this.#get(['schema', fingerprint]) as string | undefined
  }

  /** Next offset and last timestamp. */
  #end(topic: Topic, partition: number): [number, number] {
    return (this.#get(['end', topic, partition]) as [number, number] | undefined) ?? [0, 0]
  }

  #databases(topic: Topic): readonly RecordDatabase[] {
    const databases = this.#environment.records.get(topic)
    if (databases) return databases
    throw new GraspError(
      'LOG_MISMATCH',
      `the log in ${this.path} has no topic ${topic}: an older version made it; \`grasp run\` adds the topic`,
    )
  }

  #database(topic: Topic, partition: number): RecordDatabase {
    const databases = this.#databases(topic)
    const database = databases[partition]
    if (database) return database
    const message = `topic ${topic} has partitions 0 to ${databases.length - 1}, not ${partition}`
    throw new GraspError('LOG_MISMATCH', message)
  }

  #get(key: (string | number)[]): unknown {
    return this.#environment.meta.get(key)
  }

  #put(key: (string | number)[], value: unknown): void {
    this.#environment.meta.putSync(key, value)
  }
}

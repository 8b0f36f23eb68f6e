/**
 * The log port: what a stage needs of a log, whichever log it is (LMDB in `bus/lmdb/`, Kafka in
 * `bus/kafka/`).
 *
 * A topic has partitions; a record has an offset within its partition. Offsets ascend, and have gaps where the
 * log is not `contiguous`: never count by them.
 * A group's position in a partition is the offset of the *next* record to read.
 */
import type { Observable } from 'rxjs'
import type { GraspError } from '../errors/grasp-error.ts'
import type { Records, Topic } from '../schemas/types.ts'

/** A record to write. Records with equal keys keep their order: the key picks the partition. */
export interface Output<T extends Topic = Topic> {
  readonly topic: T
  readonly key: string
  readonly value: Records[T]
}

/** Builds an Output whose value is checked against its topic. */
export function output<T extends Topic>(topic: T, key: string, value: Records[T]): Output {
  return { topic, key, value } as Output
}

/** Where a record stands. */
export interface Place {
  readonly topic: Topic
  readonly partition: number
  readonly offset: number
}

/** What every record carries, decodable or not. */
export interface Envelope<T extends Topic = Topic> extends Place {
  readonly topic: T
  readonly key: string
  /** Milliseconds since the epoch, when it was appended. */
  readonly timestamp: number
  /** The encoded record, with its schema fingerprint. */
  readonly payload: Uint8Array
}

export interface LogRecord<T extends Topic = Topic> extends Envelope<T> {
  readonly value: Records[T]
}

/** A record handed to a stage. It holds credits until it is committed. */
export type Delivery<T extends Topic = Topic> =
  | (LogRecord<T> & { readonly error?: undefined })
  | Undecodable<T>

export type Undecodable<T extends Topic = Topic> = Envelope<T> & {
  readonly value?: undefined
  readonly error: GraspError
}

/** How much may be in flight between `read` and `commit`. */
export interface Credits {
  readonly records: number
  readonly bytes: number
  /** As many records are always let through, however large: what a stage gathers before it finishes any. 1 unless told. */
  readonly atLeast?: number
  /**
   * As many records of each partition are always let through: for a stage that finishes the partitions' records in an
   * order of its own, and would otherwise wait for one that the credits of later ones keep out. 0 unless told.
   */
  readonly atLeastEach?: number
}

export interface ReadOptions {
  /** The consumer group; its committed positions are where reading starts. */
  readonly group: string
  readonly credits: Credits
  /** Start here instead of at the committed positions, one offset a partition (a trainer's checkpoint). */
  readonly from?: ReadonlyMap<number, number>
  /**
   * `sealed`: complete once the topic is sealed and everything up to the seal was emitted;
   * `end`: complete at the end offsets as they were on subscription; `never`: follow for ever.
   */
  readonly until: 'sealed' | 'end' | 'never'
  /**
   * Gives the credits of these records back before they are committed: for a reader that no longer holds
   * them but cannot commit yet (a trainer between microbatches).
   */
  readonly released$?: Observable<readonly Place[]>
  /**
   * Told when partitions went to another member of the group: what was delivered of them and not committed is
   * delivered there again, and must not be committed here. Throwing makes the stream fail with that error.
   */
  readonly onLost?: (partitions: readonly number[]) => void
  /** Told once, when `workers` counts this reader. */
  readonly onJoined?: () => void
}

/** A note that changes with records. */
export interface NoteChange {
  readonly name: string
  /** What it is by now, as far as the writer knows; undefined where there is none. */
  readonly from: string | undefined
  /** What it becomes, where it is said by where the records went, in the order given. */
  readonly to: (places: readonly Place[]) => string
}

export interface AppendAfter {
  /**
   * Append only where no record was written to the topic past these offsets, one a partition; LOG_UNAVAILABLE where
   * one was. Of two that append so at once, one is refused. On Kafka, what somebody appends without this option in
   * the same moment may go unseen.
   */
  readonly after?: { readonly topic: Topic; readonly ends: readonly number[] }
  readonly notes?: undefined
}

export interface AppendNoting {
  /**
   * Changes these notes together with the records, all or none, and only where each still is what is told here:
   * NOTE_CHANGED where one is not. Of two that change a note so at once, one is refused.
   */
  readonly notes: readonly [NoteChange, ...NoteChange[]]
  readonly after?: undefined
}

export type AppendOptions = AppendAfter | AppendNoting

/** Consumed up to, exclusive: `offset` is the next one to read. */
export type Position = Place

/** What an output was made of: the first record consumed for it, and its index among the outputs made of that. */
export interface Origin extends Place {
  readonly index: number
}

export interface CommitRequest {
  readonly group: string
  readonly outputs: readonly Output[]
  /** One for each output, where known: a reader drops an output that it has seen before by its origin. */
  readonly origins?: readonly Origin[]
  readonly positions: readonly Position[]
  /** Topics that get no more records from this group once the commit is in: their readers may complete. */
  readonly seal?: readonly Topic[]
}

export type ScanStart = { readonly offset: number } | { readonly time: number }

/** What of a topic is read: all of it unless told. */
export interface ScanOptions {
  readonly partition?: number
  readonly from?: ScanStart
  /** At most so many records. */
  readonly limit?: number
}

export interface TopicInfo {
  readonly topic: Topic
  readonly partitions: number
  /** Next offset to be written, one a partition. */
  readonly ends: readonly number[]
  readonly sealed: boolean
}

export interface Log {
  /** Whether offsets have no gaps, so that a difference of offsets counts records (Kafka's transactions leave gaps). */
  readonly contiguous: boolean

  /** What is there. */
  topics(): Promise<TopicInfo[]>

  /** Writes records, all or none (durable when it resolves), and tells where they went, in the order given. */
  append(outputs: readonly Output[], options?: AppendOptions): Promise<Place[]>

  /**
   * Emits the records of a topic against credits: it never emits a record that the credits do not cover,
   * and gets them back when `commit` covers the record's offset. Undecodable records are emitted with `error`.
   * Unsubscribing stops reading.
   */
  read<T extends Topic>(topic: T, options: ReadOptions): Observable<Delivery<T>>

  /** Outputs and consumed positions become visible together, or not at all; durable when it resolves. */
  commit(request: CommitRequest): Promise<Place[]>

  /** A group's next offset in each partition of a topic (0 where it never committed). */
  committed(topic: Topic, group: string): Promise<number[]>

  /** Sets a group's positions, for reprocessing. Errors: GROUP_ACTIVE while anything reads as that group. */
  seek(topic: Topic, group: string, offsets: readonly number[]): Promise<void>

  /** Reads records outside any group: from an offset or a time, to the present end. */
  scan<T extends Topic>(topic: T, options?: ScanOptions): AsyncIterable<Delivery<T>>

  /** Lets the topic's readers complete at its present end, until more is appended and it is sealed again. */
  seal(topics: readonly Topic[]): Promise<void>

  /** Takes seals back: readers wait for what is to come, until the topics are sealed again. */
  unseal(topics: readonly Topic[]): Promise<void>

  /** What reads as this group at present, in words (`process 4711 since …`), wherever it runs. */
  workers(group: string): Promise<string[]>

  /** An encoded record of a topic (a dead letter's payload), decoded as a reader would. Errors: as a delivery's. */
  decode<T extends Topic>(topic: T, payload: Uint8Array): Promise<Records[T]>

  /** A small durable note beside the records (the configuration's hash, the run's identity). */
  note(name: string): Promise<string | undefined>
  setNote(name: string, value: string): Promise<void>

  close(): Promise<void>
}

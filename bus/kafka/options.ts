import type { KafkaConfig, SASLOptions } from 'kafkajs'
import type { Topic } from '../../schemas/types.ts'
import type { Codec } from '../codec.ts'

export type Compression = 'none' | 'gzip' | 'snappy' | 'lz4'

export interface KafkaLogOptions {
  /** `host:port`, one or more of the cluster. */
  readonly brokers: readonly string[]
  /** The run: part of every name in the cluster. */
  readonly run: string
  /** What every topic, group and transactional id starts with; `grasp` unless told. */
  readonly prefix?: string
  readonly clientId?: string
  /** How many partitions a topic has: 1 unless told. */
  readonly partitions?: Partial<Record<Topic, number>>
  /** Copies of each partition; as the brokers have it (-1) unless told. */
  readonly replication?: number
  /** The largest record, encoded; 8 MiB unless told. */
  readonly maxMessageBytes?: number
  /** How long records are kept; for ever unless told. Compacted topics keep the newest of each key for ever. */
  readonly retentionHours?: number
  readonly ssl?: KafkaConfig['ssl']
  readonly sasl?: SASLOptions
  readonly compression?: Compression
  /** Records to bytes and back; Avro's single-object encoding unless told, with its schemas in the meta topic. */
  readonly codec?: KafkaCodec
  readonly timeouts?: Timeouts
  /** Only look: nothing is created, every writing method fails. */
  readonly readOnly?: boolean
  /** Whether missing topics are made on opening; true unless told (or `readOnly`). */
  readonly create?: boolean
}

/** A codec may have to ask somebody (a schema registry) before it can encode or decode. */
export interface KafkaCodec extends Codec {
  /** Makes sure that records of these topics can be encoded. */
  prepareToEncode?(topics: readonly Topic[]): Promise<void>
  /** Makes sure that what can be known about the schema of this payload is known. */
  prepareToDecode?(topic: Topic, payload: Uint8Array): Promise<void>
  /** The log is closing: whatever still waits for somebody rejects at once. */
  close?(): void
}

/** In milliseconds. */
export interface Timeouts {
  readonly connect?: number
  readonly request?: number
  /** A member of a group that was not heard of for so long loses its partitions. */
  readonly session?: number
  /** How long the group waits for its members when partitions are shared out anew. */
  readonly rebalance?: number
  /** A transaction that is not ended within it is aborted by the broker; a third of the session, 15 s at most, unless told. */
  readonly transaction?: number
  /** How long brokers may be away before the work is given up. */
  readonly away?: number
  /** A stage that neither commits nor releases anything for so long while it holds records is taken to be stuck. */
  readonly stuck?: number
  /** How long closing may take. */
  readonly close?: number
}

/**
 * A transaction that a dead member left open keeps others from reading what was written after it, and from taking
 * its partitions over, until the broker aborts it: so that is sooner than the end of the session.
 */
const LONGEST_TRANSACTION = 15_000

export function timeoutsOf(given: Timeouts = {}): Required<Timeouts> {
  const session = given.session ?? 45_000
  return {
    connect: 5_000,
    request: 30_000,
    session,
    rebalance: 60_000,
    transaction: Math.min(LONGEST_TRANSACTION, Math.floor(session / 3)),
    away: 180_000,
    stuck: 30 * 60_000,
    close: 10_000,
    ...given,
  }
}

export const MAX_MESSAGE_BYTES = 8 << 20

import type { Records, Topic } from '../schemas/types.ts'
import type { LogRecord } from './port.ts'

/**
 * A record as it is handed out. Each log gets the payload again when somebody asks for it, which is rare: so a record
 * in flight takes its size once in memory and not twice, and small ones are spared a piece of memory of their own.
 */
export abstract class DecodedRecord<T extends Topic> implements LogRecord<T> {
  readonly topic: T
  readonly partition: number
  readonly offset: number
  readonly key: string
  readonly timestamp: number
  readonly value: Records[T]

  constructor(
    topic: T,
    partition: number,
    offset: number,
    key: string,
    timestamp: number,
    value: Records[T],
  ) {
    this.topic = topic
    this.partition = partition
    this.offset = offset
    this.key = key
    this.timestamp = timestamp
    this.value = value
  }

  /** In memory of its own. */
  abstract get payload(): Uint8Array
}

import type { Delivery, LogRecord, Undecodable } from '../bus/port.ts'
import type { Batch, Records } from '../schemas/types.ts'
import { type KeyedBatch, keyedBatch } from './batch-key.ts'

/** The topics whose records belong to a batch. */
export type BatchTopic = {
  [T in keyof Records]: Records[T] extends { batch: Batch } ? T : never
}[keyof Records]

export interface WholeBatch<T extends BatchTopic> extends KeyedBatch {
  /** Ascending by index; none where no record of the batch could be decoded. */
  readonly members: readonly LogRecord<T>[]
  /** What could not be decoded in place of the members that are missing. */
  readonly undecodable: readonly Undecodable<T>[]
  readonly stray?: undefined
}

/** A record that can neither be decoded nor belongs to a batch: it is done with by itself. */
export interface Stray<T extends BatchTopic> {
  readonly stray: Undecodable<T>
}

/**
 * Gathers the records of each batch. A batch is whole when its members and those that cannot be decoded make up its
 * size: nobody may wait for a member that cannot come.
 */
export class BatchAssembly<T extends BatchTopic> {
  /** By number, then by offset: what is delivered again stands in for what was delivered before. */
  readonly #open = new Map<number, Map<number, Delivery<T>>>()

  /** The batch that this delivery completes, if any. */
  add(delivery: Delivery<T>): WholeBatch<T> | Stray<T> | undefined {
    const batch = delivery.error === undefined ? batchOf(delivery) : keyedBatch(delivery.key)
    if (batch === undefined) return { stray: delivery as Undecodable<T> }
    const { number, size } = batch
    const gathered = this.#open.get(number) ?? new Map<number, Delivery<T>>()
    this.#open.set(number, gathered)
    gathered.set(delivery.offset, delivery)
    if (gathered.size < size) return undefined
    this.#open.delete(number)
    const members = [...gathered.values()].filter(each => each.error === undefined)
    members.sort((a, b) => batchOf(a).index - batchOf(b).index)
    const undecodable = [...gathered.values()].filter(each => each.error !== undefined)
    return { number, size, members, undecodable }
  }
}

function batchOf<T extends BatchTopic>(record: LogRecord<T>): Batch {
  return (record.value as { batch: Batch }).batch
}

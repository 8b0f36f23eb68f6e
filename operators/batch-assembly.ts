import type { Delivery, LogRecord, Undecodable } from '../bus/port.ts'
import type { Batch, Records } from '../schemas/types.ts'

/** The topics whose records belong to a batch. */
export type BatchTopic = {
  [T in keyof Records]: Records[T] extends { batch: Batch } ? T : never
}[keyof Records]

export interface WholeBatch<T extends BatchTopic> {
  readonly number: number
  readonly size: number
  /** Ascending by index; at least one. */
  readonly members: readonly LogRecord<T>[]
  /** What could not be decoded in place of the members that are missing. */
  readonly undecodable: readonly Undecodable<T>[]
}

/**
 * Gathers the records of each batch. A batch is whole when its members and the undecodable records that came with
 * it make up its size: nobody may wait for a member that cannot come.
 */
export class BatchAssembly<T extends BatchTopic> {
  readonly #open = new Map<number, LogRecord<T>[]>()
  /** By partition: a batch's records share one. */
  readonly #undecodable = new Map<number, Undecodable<T>[]>()

  /** The batch that this delivery completes, if any. */
  add(delivery: Delivery<T>): WholeBatch<T> | undefined {
    if (delivery.error !== undefined) {
      this.#undecodable.set(delivery.partition, [...this.#lostIn(delivery.partition), delivery])
    } else {
      const { number } = batchOf(delivery)
      this.#open.set(number, [...(this.#open.get(number) ?? []), delivery])
    }
    for (const [number, members] of this.#open) {
      const { size } = batchOf(members[0]!)
      const lost = this.#lostIn(members[0]!.partition)
      if (members.length + lost.length < size) continue
      this.#open.delete(number)
      const undecodable = lost.splice(0, size - members.length)
      members.sort((a, b) => batchOf(a).index - batchOf(b).index)
      return { number, size, members, undecodable }
    }
    return undefined
  }

  #lostIn(partition: number): Undecodable<T>[] {
    return this.#undecodable.get(partition) ?? []
  }
}

function batchOf<T extends BatchTopic>(record: LogRecord<T>): Batch {
  return (record.value as { batch: Batch }).batch
}

/** The key of a batch's records: equal keys share a partition, so one worker gets all of it. */
export function batchKey(number: number): string {
  return `batch ${number}`
}

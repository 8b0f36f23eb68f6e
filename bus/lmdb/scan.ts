/** Reading outside any group, to the present end. */
import type { Topic } from '../../schemas/types.ts'
import type { Codec } from '../codec.ts'
import type { Delivery, ScanOptions, ScanStart } from '../port.ts'
import { deliver } from './delivery.ts'
import type { Store } from './store.ts'

interface Cursor {
  readonly partition: number
  readonly end: number
  next: number
  /** Timestamp of the record at `next`. */
  time: number
}

/** The partitions' records merged by their timestamps. */
export async function* scanTopic<T extends Topic>(
  store: Store,
  codec: Codec,
  topic: T,
  { partition, from, limit = Number.POSITIVE_INFINITY }: ScanOptions,
): AsyncGenerator<Delivery<T>> {
  store.refresh()
  const ends = store.ends(topic)
  const cursors: Cursor[] = []
  for (const p of partition === undefined ? ends.keys() : [partition]) {
    const end = store.end(topic, p)
    const next = firstOffset(store, topic, p, end, from)
    if (next < end) cursors.push({ partition: p, end, next, time: store.timestamp(topic, p, next) })
  }
  for (let count = 0; count < limit && cursors.length > 0; count++) {
    const cursor = cursors.reduce((first, other) => (other.time < first.time ? other : first))
    const offset = cursor.next++
    if (cursor.next < cursor.end) cursor.time = store.timestamp(topic, cursor.partition, cursor.next)
    else cursors.splice(cursors.indexOf(cursor), 1)
    yield deliver(store, codec, topic, cursor.partition, offset)!
  }
}

function firstOffset(store: Store, topic: Topic, partition: number, end: number, from?: ScanStart): number {
  if (!from) return 0
  if ('offset' in from) return Math.max(0, from.offset)
  let low = 0
  let high = end
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (store.timestamp(topic, partition, middle) < from.time) low = middle + 1
    else high = middle
  }
  return low
}

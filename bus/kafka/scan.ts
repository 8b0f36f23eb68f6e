/** Reading outside any group, to the present end. */
import type { Topic } from '../../schemas/types.ts'
import type { Delivery, ScanOptions, ScanStart } from '../port.ts'
import type { RawMessage } from './client.ts'
import type { ClusterLog } from './cluster-log.ts'
import { deliver, prepare } from './delivery.ts'
import { fetchPartitions, listOffsets } from './fetch.ts'
import type { KafkaCodec } from './options.ts'
import { isAfter, type Mark, originOf } from './origin.ts'
import { retrying } from './retrying.ts'

const LIMITS = { maxBytes: 2 << 20, maxWait: 100 }

interface Lane {
  readonly partition: number
  readonly end: number
  cursor: number
  records: readonly RawMessage[]
  next: number
  /** The last origin of each source, so that repetitions are left out as a reader leaves them out. */
  readonly seen: Map<string, Mark>
}

/** The partitions' records merged by their timestamps, without repetitions of those that were there before. */
export async function* scanTopic<T extends Topic>(
  log: ClusterLog,
  codec: KafkaCodec,
  topic: T,
  { partition, from, limit = Number.POSITIVE_INFINITY }: ScanOptions,
): AsyncGenerator<Delivery<T>> {
  if (limit <= 0) return
  const ends = await log.ends(topic)
  const wanted = partition === undefined ? [...ends.keys()] : [partition]
  const starts = await startsOf(log, topic, wanted, from)
  const lanes: Lane[] = wanted.map(p => {
    return { partition: p, end: ends[p] ?? 0, cursor: starts.get(p)!, records: [], next: 0, seen: new Map() }
  })
  const refresh = () => log.meta.refresh()
  for (let count = 0; count < limit; count++) {
    await Promise.all(lanes.map(lane => fill(log, codec, topic, lane, refresh)))
    const ready = lanes.filter(lane => lane.next < lane.records.length)
    if (ready.length === 0) return
    const first = ready.reduce((a, b) => (timeOf(b) < timeOf(a) ? b : a))
    yield deliver(codec, topic, first.partition, first.records[first.next++]!)
  }
}

async function fill(
  log: ClusterLog,
  codec: KafkaCodec,
  topic: Topic,
  lane: Lane,
  refresh: () => Promise<void>,
): Promise<void> {
  while (lane.next >= lane.records.length && lane.cursor < lane.end) {
    const cursors = new Map([[lane.partition, lane.cursor]])
    const fetched = await retrying(log.cluster, () =>
      fetchPartitions(log.cluster, log.names.topic(topic), cursors, LIMITS),
    )
    const { records, next } = fetched.get(lane.partition)!
    lane.records = records.filter(record => Number(record.offset) < lane.end && !isRepeated(lane, record))
    lane.next = 0
    lane.cursor = next
    await prepare(codec, topic, lane.records, refresh)
  }
}

function isRepeated({ seen }: Lane, message: RawMessage): boolean {
  const origin = originOf(message)
  if (!origin) return false
  const { source, mark } = origin
  const last = seen.get(source)
  if (last && !isAfter(mark, last)) return true
  seen.set(source, mark)
  return false
}

async function startsOf(
  log: ClusterLog,
  topic: Topic,
  partitions: readonly number[],
  from: ScanStart | undefined,
): Promise<Map<number, number>> {
  if (from === undefined || 'offset' in from) {
    const beginnings = await log.beginnings(topic)
    return new Map(partitions.map(p => [p, Math.max(beginnings.get(p) ?? 0, from?.offset ?? 0)]))
  }
  const name = log.names.topic(topic)
  const found = await retrying(log.cluster, () => listOffsets(log.cluster, name, partitions, from))
  return new Map(partitions.map(p => [p, found.get(p)! < 0 ? Number.POSITIVE_INFINITY : found.get(p)!]))
}

function timeOf({ records, next }: Lane): number {
  return Number(records[next]!.timestamp)
}

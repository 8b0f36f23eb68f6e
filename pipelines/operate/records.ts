/** Records of a topic, chosen by where they stand and what they hold. */
import type { Delivery, Log, ScanStart, TopicInfo } from '../../bus/port.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import type { RecordFilter } from './where.ts'

export interface Selection {
  readonly topic: Topic
  /** Only this one. */
  readonly partition?: number | undefined
  readonly key?: string | undefined
  readonly filter?: RecordFilter | undefined
}

const chosen = ({ key, filter }: Selection, record: Delivery) =>
  (key === undefined || record.key === key) && (filter === undefined || filter(record))

/** The partitions that are selected. Errors: CONFIG_INVALID for one that the topic does not have. */
export async function partitionsOf(log: Log, { topic, partition }: Selection): Promise<TopicInfo> {
  const info = (await log.topics()).find(entry => entry.topic === topic)
  const found = info ?? { topic, partitions: 0, ends: [], sealed: false }
  if (partition === undefined || partition < Math.max(1, found.partitions)) return found
  const message = `--partition ${partition}: ${topic} has ${found.partitions}, numbered from 0`
  throw new GraspError('CONFIG_INVALID', message)
}

/** All that is there from a start on, oldest first; the beginning unless told. */
export async function* recordsFrom(
  log: Log,
  selection: Selection,
  from: ScanStart = { offset: 0 },
): AsyncGenerator<Delivery> {
  const { topic, partition } = selection
  const where = partition === undefined ? {} : { partition }
  for await (const record of log.scan(topic, { from, ...where })) {
    if (chosen(selection, record)) yield record as Delivery
  }
}

/** The newest that are there, oldest first. */
export async function newestRecords(log: Log, selection: Selection, count: number): Promise<Delivery[]> {
  if (count === 0) return []
  // What is chosen by content may be anywhere.
  if (selection.key !== undefined || selection.filter !== undefined) {
    const last: Delivery[] = []
    for await (const record of recordsFrom(log, selection)) {
      last.push(record)
      if (last.length > count) last.shift()
    }
    return last
  }
  const { ends } = await partitionsOf(log, selection)
  const found: Delivery[] = []
  for (const [partition, end] of ends.entries()) {
    if (selection.partition === undefined || selection.partition === partition)
      found.push(...(await newestOf(log, { ...selection, partition }, end, count)))
  }
  return found.sort((a, b) => a.timestamp - b.timestamp).slice(Math.max(0, found.length - count))
}

/** Offsets may have gaps, so it is looked further back until there are enough. */
async function newestOf(log: Log, selection: Selection, end: number, count: number): Promise<Delivery[]> {
  for (let back = count; ; back *= 4) {
    const start = Math.max(0, end - back)
    const found: Delivery[] = []
    for await (const record of recordsFrom(log, selection, { offset: start })) {
      found.push(record)
      if (found.length > count) found.shift()
    }
    if (found.length >= count || start === 0) return found
  }
}

/** How many records are there, by reading them unless offsets tell. */
export async function countRecords(log: Log, selection: Selection): Promise<number> {
  const { ends } = await partitionsOf(log, selection)
  const { partition, key, filter } = selection
  if (log.contiguous && key === undefined && filter === undefined) {
    return ends.reduce((sum, end, p) => sum + (partition === undefined || p === partition ? end : 0), 0)
  }
  let count = 0
  for await (const _ of recordsFrom(log, selection)) count += 1
  return count
}

/** Offsets that lie no further apart are read in one go. */
const NEAR = 1000

/** The records at these places of a topic, by partition and offset. A place without a record gives none. */
export async function* recordsAt(
  log: Log,
  topic: Topic,
  places: readonly { readonly partition: number; readonly offset: number }[],
): AsyncGenerator<Delivery> {
  const byPartition = new Map<number, number[]>()
  for (const { partition, offset } of places)
    byPartition.set(partition, [...(byPartition.get(partition) ?? []), offset])
  for (const [partition, offsets] of byPartition) {
    for (const run of runsOf(offsets)) {
      const last = Math.max(...run)
      for await (const record of log.scan(topic, { partition, from: { offset: Math.min(...run) } })) {
        if (run.has(record.offset)) yield record as Delivery
        if (record.offset >= last) break
      }
    }
  }
}

/** Cut where the next one is too far away to read what lies in between. */
function runsOf(offsets: readonly number[]): Set<number>[] {
  const runs: Set<number>[] = []
  let before = Number.NEGATIVE_INFINITY
  for (const offset of [...offsets].sort((a, b) => a - b)) {
    if (offset - before > NEAR) runs.push(new Set())
    runs.at(-1)!.add(offset)
    before = offset
  }
  return runs
}

/** The first record at or after an offset of a partition, if there is one. */
export async function recordAt(
  log: Log,
  topic: Topic,
  partition: number,
  from: ScanStart,
): Promise<Delivery | undefined> {
  for await (const record of log.scan(topic, { partition, from, limit: 1 })) return record as Delivery
  return undefined
}

/** Outputs on their way into the log: encoded before the write transaction begins, and given their places in it. */
import type { Topic } from '../../schemas/types.ts'
import type { Codec } from '../codec.ts'
import { partitionOf } from '../partition.ts'
import type { Output, Place } from '../port.ts'
import { writeEntry } from './entry.ts'
import type { Store } from './store.ts'

/** A record encoded for the log, before it has a place. */
export interface Prepared {
  readonly topic: Topic
  readonly partition: number
  readonly entry: Buffer
}

/** Errors: RECORD_INVALID for a value that its topic does not take. */
export function prepare(store: Store, codec: Codec, outputs: readonly Output[]): Prepared[] {
  return outputs.map(({ topic, key, value }) => {
    const partition = partitionOf(key, store.partitions(topic))
    const entry = writeEntry(key, allocate => codec.encode(topic, value, allocate))
    return { topic, partition, entry }
  })
}

/** Bytes of the entries. */
export function sizeOf(prepared: readonly Prepared[]): number {
  return prepared.reduce((sum, { entry }) => sum + entry.length, 0)
}

/** Appends within a transaction and tells where they went, in the order given. */
export function appendAll(store: Store, prepared: readonly Prepared[]): Place[] {
  const now = Date.now()
  const lanes = new Map<string, { topic: Topic; partition: number; entries: Buffer[] }>()
  const places = prepared.map(({ topic, partition, entry }) => {
    const key = `${topic}/${partition}`
    const lane = lanes.get(key) ?? { topic, partition, entries: [] }
    lanes.set(key, lane)
    return { lane, index: lane.entries.push(entry) - 1 }
  })
  const first = new Map(
    [...lanes.values()].map(lane => [lane, store.append(lane.topic, lane.partition, lane.entries, now)]),
  )
  return places.map(({ lane, index }) => {
    return { topic: lane.topic, partition: lane.partition, offset: first.get(lane)! + index }
  })
}

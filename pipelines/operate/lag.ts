/** How far each stage is behind its topic. */
import type { Log, TopicInfo } from '../../bus/port.ts'
import type { Topic } from '../../schemas/types.ts'
import type { StageName } from '../topology.ts'
import { CONSUMERS, type Consumer } from './consumers.ts'
import { recordAt, recordsFrom } from './records.ts'

export interface PartitionLag {
  readonly partition: number
  /** Next offset to be written. */
  readonly end: number
  /** Next offset that the stage is going to read. */
  readonly committed: number
  /** Unread records; null where offsets have gaps and the records were not counted. */
  readonly records: number | null
  /** When the oldest unread record was written, milliseconds since the epoch; null where there is none. */
  readonly oldest: number | null
}

export interface StageLag {
  readonly stage: StageName
  readonly topic: Topic | null
  /** Null where the stage keeps no position; `why` then says so. */
  readonly group: string | null
  readonly why?: string
  readonly sealed: boolean
  readonly partitions: readonly PartitionLag[]
  /** Sums over the partitions; `atMost` bounds `records` where these were not counted. */
  readonly end: number
  readonly committed: number
  readonly records: number | null
  readonly atMost: number
  readonly oldest: number | null
  /** What reads as this stage at present. */
  readonly workers: readonly string[]
}

export interface LagOptions {
  /** Count the records where offsets have gaps, by reading them all. */
  readonly exact?: boolean
}

/** Every stage, in the order of the pipeline. */
export async function stageLags(log: Log, options: LagOptions = {}): Promise<StageLag[]> {
  const lags: StageLag[] = []
  for (const consumer of CONSUMERS) lags.push(await stageLag(log, consumer, options))
  return lags
}

async function stageLag(log: Log, consumer: Consumer, { exact = false }: LagOptions): Promise<StageLag> {
  const { stage, topic, group } = consumer
  if (group === null) {
    const nothing = {
      sealed: false,
      partitions: [],
      end: 0,
      committed: 0,
      records: null,
      atMost: 0,
      oldest: null,
    }
    const workers = topic === null ? [] : await log.workers(stage)
    return { stage, topic, group, why: consumer.why, ...nothing, workers }
  }
  // Positions first: what is written and read in between must not make them exceed the ends.
  const committed = await committedOf(log, topic, group)
  const info = (await log.topics()).find(entry => entry.topic === topic)
  const partitions: PartitionLag[] = []
  for (const [partition, end] of (info?.ends ?? []).entries())
    partitions.push(
      await partitionLag(log, topic, { partition, end, committed: committed[partition] ?? 0 }, exact),
    )
  const sum = (of: (lag: PartitionLag) => number) => partitions.reduce((total, lag) => total + of(lag), 0)
  const times = partitions.flatMap(({ oldest }) => oldest ?? [])
  const counted = partitions.every(({ records }) => records !== null)
  return {
    ...{ stage, topic, group, partitions },
    sealed: info?.sealed ?? false,
    end: sum(({ end }) => end),
    committed: sum(lag => lag.committed),
    records: counted ? sum(({ records }) => records ?? 0) : null,
    atMost: sum(lag => (lag.records !== null ? lag.records : lag.end - lag.committed)),
    oldest: times.length === 0 ? null : Math.min(...times),
    workers: await log.workers(group),
  }
}

async function partitionLag(
  log: Log,
  topic: Topic,
  place: { readonly partition: number; readonly end: number; readonly committed: number },
  exact: boolean,
): Promise<PartitionLag> {
  const { partition, end, committed } = place
  // Where offsets have gaps, the last of them may hold no record at all.
  const first = committed < end ? await recordAt(log, topic, partition, { offset: committed }) : undefined
  if (first === undefined) return { ...place, records: 0, oldest: null }
  const counted = log.contiguous ? end - committed : exact ? await countBetween(log, topic, place) : null
  return { ...place, records: counted, oldest: first.timestamp }
}

/** Records of a partition from the position to the end, by reading them. */
async function countBetween(
  log: Log,
  topic: Topic,
  {
    partition,
    end,
    committed,
  }: { readonly partition: number; readonly end: number; readonly committed: number },
): Promise<number> {
  let count = 0
  for await (const { offset } of recordsFrom(log, { topic, partition }, { offset: committed })) {
    if (offset >= end) break
    count += 1
  }
  return count
}

/** A group's positions; none in a topic that is not there yet. */
async function committedOf(log: Log, topic: Topic, group: string): Promise<number[]> {
  const there = (await log.topics()).some((info: TopicInfo) => info.topic === topic)
  return there ? log.committed(topic, group) : []
}

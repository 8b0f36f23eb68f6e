/** Reading partitions at offsets: only what is committed, without the markers of transactions. */
import type { Cluster, FetchedPartition, RawMessage } from './client.ts'

export interface Fetched {
  readonly records: readonly RawMessage[]
  /** Where to go on: past the records, and past what was left out. */
  readonly next: number
  /** Below it everything is decided: no open transaction holds a record there. */
  readonly stable: number
  /** Past all that is written, decided or not. */
  readonly written: number
}

export interface FetchLimits {
  /** Of one answer, more only for a record that is larger by itself. */
  readonly maxBytes: number
  /** Of one partition; as the whole unless told. */
  readonly partitionBytes?: number
  /** How long the broker may wait for something new, in milliseconds. */
  readonly maxWait: number
}

/** `cursors`: where to read each partition. The topic must be among the cluster's. */
export async function fetchPartitions(
  cluster: Cluster,
  topic: string,
  cursors: ReadonlyMap<number, number>,
  { maxBytes, partitionBytes = maxBytes, maxWait }: FetchLimits,
): Promise<Map<number, Fetched>> {
  const answers = await Promise.all(
    [...byLeader(cluster, topic, cursors.keys())].map(async ([nodeId, partitions]) => {
      const broker = await cluster.findBroker({ nodeId })
      const { responses } = await broker.fetch({
        maxWaitTime: maxWait,
        minBytes: maxWait === 0 ? 0 : 1,
        maxBytes,
        isolationLevel: 1,
        topics: [
          {
            topic,
            partitions: partitions.map(partition => ({
              partition,
              fetchOffset: String(cursors.get(partition)),
              maxBytes: partitionBytes,
            })),
          },
        ],
      })
      const fetched = responses.flatMap(response => response.partitions)
      if (fetched.length < partitions.length) throw throttled()
      // The size of an answer is limited, so a partition may have been left out of it: but not all of them.
      const exhausted = fetched.every(({ messages }) => messages.length === 0)
      return fetched.map(
        each => [each.partition, sift(each, cursors.get(each.partition)!, exhausted)] as const,
      )
    }),
  )
  return new Map(answers.flat())
}

/** A client over its quota gets an answer that lacks what it asked for. */
function throttled(): Error {
  const message = 'the broker answered with nothing, since this client is over its quota'
  return Object.assign(new Error(message), { type: 'THROTTLING_QUOTA_EXCEEDED' })
}

/** Everything below is decided, or just written. */
export type EndKind = 'stable' | 'written'

const EARLIEST = -2
const LATEST = -1

/** The ends or beginnings (`at` a kind), or the first offsets from a time on (-1: none). */
export async function listOffsets(
  cluster: Cluster,
  topic: string,
  partitions: Iterable<number>,
  at: EndKind | 'beginning' | { readonly time: number },
): Promise<Map<number, number>> {
  const timestamp = typeof at !== 'string' ? at.time : at === 'beginning' ? EARLIEST : LATEST
  const answers = await Promise.all(
    [...byLeader(cluster, topic, partitions)].map(async ([nodeId, own]) => {
      const broker = await cluster.findBroker({ nodeId })
      const { responses } = await broker.listOffsets({
        isolationLevel: at === 'written' ? 0 : 1,
        topics: [{ topic, partitions: own.map(partition => ({ partition, timestamp })) }],
      })
      return responses.flatMap(response => response.partitions)
    }),
  )
  return new Map(answers.flat().map(({ partition, offset }) => [partition, Number(offset)]))
}

function byLeader(cluster: Cluster, topic: string, partitions: Iterable<number>): Map<number, number[]> {
  const leaders = new Map(cluster.findTopicPartitionMetadata(topic).map(p => [p.partitionId, p.leader]))
  const groups = new Map<number, number[]>()
  for (const partition of partitions) {
    const leader = leaders.get(partition)
    if (leader === undefined || leader < 0) {
      throw Object.assign(new Error(`${topic}/${partition} has no leader`), { type: 'LEADER_NOT_AVAILABLE' })
    }
    const group = groups.get(leader)
    if (group) group.push(partition)
    else groups.set(leader, [partition])
  }
  return groups
}

function sift(fetched: FetchedPartition, cursor: number, exhausted: boolean): Fetched {
  const { messages, abortedTransactions } = fetched
  const stable = Number(fetched.lastStableOffset)
  const written = Number(fetched.highWatermark)
  // What compaction took away at the end leaves nothing to fetch.
  if (messages.length === 0)
    return { records: [], next: exhausted ? Math.max(cursor, stable) : cursor, stable, written }
  const next = Math.max(cursor, Number(messages.at(-1)!.offset) + 1)
  return { records: committedOf(messages, abortedTransactions ?? [], cursor), next, stable, written }
}

/** Aborted transactions begin at the offset that the broker tells and end with their producer's marker. */
function committedOf(
  messages: readonly RawMessage[],
  aborted: FetchedPartition['abortedTransactions'],
  cursor: number,
): RawMessage[] {
  const begins = aborted.map(({ producerId, firstOffset }) => ({ producerId, first: Number(firstOffset) }))
  begins.sort((a, b) => a.first - b.first)
  const open = new Set<string>()
  let begun = 0
  return messages.filter(message => {
    const offset = Number(message.offset)
    for (; begun < begins.length && begins[begun]!.first <= offset; begun++)
      open.add(begins[begun]!.producerId)
    const { producerId, inTransaction } = message.batchContext
    if (message.isControlRecord) {
      open.delete(producerId)
      return false
    }
    return offset >= cursor && !(inTransaction && open.has(producerId))
  })
}

/** What the processes of a run share in the cluster, as one of them sees it: ends, positions, seals. */
import type { Admin } from 'kafkajs'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import type { Cluster } from './client.ts'
import { typeOf, undecided } from './faults.ts'
import { type EndKind, fetchPartitions, listOffsets } from './fetch.ts'
import type { Meta } from './meta.ts'
import type { Names } from './names.ts'
import { type Seen, seenOf } from './origin.ts'
import { offsetFetch } from './requests.ts'
import { delay, PATIENCE_MS, retrying } from './retrying.ts'

/** The offsets of a transaction may come a moment after its commit was answered. */
const MARKER_MS = 5_000
const LOOK_MS = 5
const MOST_LOOK_MS = 200
/** Whether there is a record at all; the first one comes whatever its size. */
const LOOK_BYTES = 16 << 10

export interface CommittedPosition {
  /** 0 where the group never committed. */
  readonly offset: number
  readonly stored: boolean
  readonly seen: Seen
}

export class ClusterLog {
  readonly cluster: Cluster
  readonly admin: Admin
  readonly names: Names
  readonly meta: Meta
  readonly #partitions: ReadonlyMap<Topic, number>
  /** Past the last record that this process wrote, by topic/partition. */
  readonly #written = new Map<string, number>()
  /** What this process set last, by group/topic/partition. */
  readonly #positions = new Map<string, { offset: number; until: number }>()
  /** Past a seal, up to where only markers were found, by topic/partition. */
  readonly #empty = new Map<string, { from: number; to: number }>()

  constructor(
    cluster: Cluster,
    admin: Admin,
    names: Names,
    meta: Meta,
    partitions: ReadonlyMap<Topic, number>,
  ) {
    this.cluster = cluster
    this.admin = admin
    this.names = names
    this.meta = meta
    this.#partitions = partitions
  }

  partitions(topic: Topic): number {
    return this.#partitions.get(topic)!
  }

  indices(topic: Topic): number[] {
    return Array.from({ length: this.partitions(topic) }, (_, partition) => partition)
  }

  wrote(topic: Topic, partition: number, offset: number): void {
    const key = `${topic}/${partition}`
    this.#written.set(key, Math.max(this.#written.get(key) ?? 0, offset + 1))
  }

  /** `stable` ends are past everything that this process wrote, once its transactions are marked. */
  async ends(topic: Topic, kind: EndKind = 'stable'): Promise<number[]> {
    const indices = this.indices(topic)
    const deadline = Date.now() + (this.cluster.patience ?? PATIENCE_MS)
    for (let pause = LOOK_MS; ; pause = Math.min(2 * pause, MOST_LOOK_MS)) {
      const ends = await retrying(this.cluster, () =>
        listOffsets(this.cluster, this.names.topic(topic), indices, kind),
      )
      const behind = indices.some(p => ends.get(p)! < (this.#written.get(`${topic}/${p}`) ?? 0))
      if (!behind) return indices.map(p => ends.get(p)!)
      if (Date.now() > deadline) throw undecided(this.names.topic(topic))
      await delay(pause)
    }
  }

  /** Where the partitions begin: past what their retention took away. */
  async beginnings(topic: Topic): Promise<Map<number, number>> {
    const name = this.names.topic(topic)
    return retrying(this.cluster, () => listOffsets(this.cluster, name, this.indices(topic), 'beginning'))
  }

  setPosition(group: string, topic: Topic, partition: number, offset: number): void {
    const until = Date.now() + MARKER_MS
    this.#positions.set(`${partition}/${topic}/${group}`, { offset, until })
  }

  /** A group's positions as they are told at present, none older than those that this process set. */
  async positions(group: string, topic: Topic): Promise<CommittedPosition[]> {
    for (;;) {
      const fetched = await retrying(this.cluster, () =>
        this.#fetchPositions(group, topic, { stable: false }),
      )
      const stale = fetched.some(({ offset }, p) => {
        const own = this.#positions.get(`${p}/${topic}/${group}`)
        return own !== undefined && offset < own.offset && Date.now() < own.until
      })
      if (!stale) return fetched
      await delay(LOOK_MS)
    }
  }

  /** A group's positions when no transaction is open that may set them. */
  async stablePositions(group: string, topic: Topic): Promise<CommittedPosition[]> {
    const deadline = Date.now() + (this.cluster.patience ?? PATIENCE_MS)
    for (let pause = LOOK_MS; ; pause = Math.min(2 * pause, MOST_LOOK_MS)) {
      try {
        return await retrying(this.cluster, () => this.#fetchPositions(group, topic, { stable: true }))
      } catch (error) {
        if (typeOf(error) !== 'UNSTABLE_OFFSET_COMMIT' || Date.now() > deadline) throw error
        await delay(pause)
      }
    }
  }

  /** Sets the positions of a group that has no members. */
  async storePositions(group: string, topic: Topic, offsets: readonly number[]): Promise<void> {
    const groupId = this.names.group(group)
    const partitions = offsets.map((offset, partition) => ({ partition, offset: String(offset) }))
    await retrying(this.cluster, async () => {
      const coordinator = await this.cluster.findGroupCoordinator({ groupId })
      await coordinator.offsetCommit({
        groupId,
        groupGenerationId: -1,
        memberId: '',
        topics: [{ topic: this.names.topic(topic), partitions }],
      })
    })
  }

  /** Where the topic is sealed, if it is: nothing was written since but markers of transactions. */
  async sealedEnds(topic: Topic): Promise<readonly number[] | undefined> {
    const seal = this.meta.seal(topic)
    if (!seal) return undefined
    const ends = await this.ends(topic)
    for (const [p, end] of ends.entries()) {
      if (end > seal[p]! && !(await this.#onlyMarkers(topic, p, seal[p]!, end))) return undefined
    }
    return seal
  }

  /** Whether no record stands from one offset to another. */
  async isEmpty(topic: Topic, partition: number, from: number, to: number): Promise<boolean> {
    const name = this.names.topic(topic)
    for (let cursor = from; cursor < to; ) {
      const fetched = await retrying(this.cluster, () =>
        fetchPartitions(this.cluster, name, new Map([[partition, cursor]]), {
          maxBytes: LOOK_BYTES,
          maxWait: 0,
        }),
      )
      const { records, next } = fetched.get(partition)!
      if (records.length > 0) return Number(records[0]!.offset) >= to
      // An open transaction is in the way.
      if (next === cursor) return false
      cursor = next
    }
    return true
  }

  async #onlyMarkers(topic: Topic, partition: number, from: number, to: number): Promise<boolean> {
    const key = `${topic}/${partition}`
    const known = this.#empty.get(key)
    const start = known?.from === from ? known.to : from
    if (!(await this.isEmpty(topic, partition, start, to))) return false
    this.#empty.set(key, { from, to })
    return true
  }

  async #fetchPositions(
    group: string,
    topic: Topic,
    how: { readonly stable: boolean },
  ): Promise<CommittedPosition[]> {
    const groupId = this.names.group(group)
    const coordinator = await this.cluster.findGroupCoordinator({ groupId })
    const partitions = this.indices(topic)
    const asked = { groupId, topic: this.names.topic(topic), partitions }
    const found = new Map((await offsetFetch(coordinator, asked, how)).map(each => [each.partition, each]))
    return partitions.map(p => {
      const { offset, metadata } = found.get(p)!
      return { offset: Math.max(0, Number(offset)), stored: Number(offset) >= 0, seen: seenOf(metadata) }
    })
  }
}

export function noSuchPosition(topic: Topic, partition: number, offset: number, end: number): GraspError {
  const message = `position ${offset} of ${topic}/${partition} does not exist: the log ends at ${end}`
  return new GraspError('LOG_MISMATCH', message)
}

/**
 * A reader's seat in its consumer group: which partitions are its own, and while a commit for them is under way,
 * that they stay so.
 *
 * When the group is shared out anew, commits under way are settled first, then the member joins again; what went to
 * another member is lost. A member that was put out of the group (the machine slept) and gets a partition back on
 * which nobody went on meanwhile keeps what it did of it.
 */
import type { Topic } from '../../schemas/types.ts'
import type { Client, Cluster } from './client.ts'
import type { ClusterLog, CommittedPosition } from './cluster-log.ts'
import { departed, forgottenPosition, goneRecords } from './faults.ts'
import { Lane } from './lane.ts'
import { Membership } from './membership.ts'
import { seenText } from './origin.ts'
import type { Member } from './requests.ts'
import { delay, retrying } from './retrying.ts'
import type { Signal } from './signal.ts'
import type { Transactions } from './transactions.ts'

const LOOK_MS = 100
/** Who subscribes again within it takes over the seat, so that nobody else's partitions move. */
const LINGER_MS = 500

export interface SeatParts {
  readonly client: Client
  readonly log: ClusterLog
  readonly transactions: Transactions
  /** Notes that a group has positions in these partitions. */
  readonly began: (group: string, topic: Topic, partitions: readonly number[]) => Promise<void>
}

export interface SeatOptions {
  readonly topic: Topic
  readonly group: string
  readonly from: ReadonlyMap<number, number> | undefined
  /** Raised whenever there may be something to do. */
  readonly wake: Signal
  /** Told what went to another member; throwing makes the reader fail. */
  readonly lost: (partitions: readonly number[]) => void
  /** Asked from time to time; throws when the member should give up. */
  readonly check: () => void
  readonly failed: (cause: unknown) => void
}

/** What is left to the next reader of the same topic and group. */
export interface Estate {
  readonly cluster: Cluster
  readonly membership: Membership
}

export class Seat {
  readonly lanes = new Map<number, Lane>()
  readonly cluster: Cluster
  readonly #parts: SeatParts
  readonly #options: SeatOptions
  readonly #membership: Membership
  #timer: NodeJS.Timeout | undefined
  #isTold = false
  #joining = false
  #beating = false
  #rejoining: Promise<void> | undefined
  #holders = 0
  /** No more joining. */
  #leaving = false
  #hurry = false
  #claimed = false
  #left = false

  constructor(parts: SeatParts, options: SeatOptions, estate?: Estate) {
    this.#parts = parts
    this.#options = options
    const { client, log } = parts
    const { group, topic } = options
    this.cluster = estate?.cluster ?? client.cluster()
    this.#membership =
      estate?.membership ??
      new Membership(
        this.cluster,
        log.names.group(group),
        log.names.topic(topic),
        log.partitions(topic),
        client.timeouts,
      )
  }

  /** As the group knows it at present. */
  get member(): Member {
    return this.#membership.member
  }

  /** False while its partitions may change. */
  get steady(): boolean {
    return !this.#rejoining && !this.#isTold
  }

  async take(): Promise<void> {
    const { log, client } = this.#parts
    const stopped = () => this.#leaving
    await retrying(this.cluster, () => this.cluster.connect(), { stopped })
    const topics = [log.names.topic(this.#options.topic)]
    await retrying(this.cluster, () => this.cluster.addMultipleTargetTopics(topics), { stopped })
    this.#startRejoin()
    await this.#rejoining
    this.#timer = setInterval(() => void this.#beat(), client.timeouts.session / 15)
  }

  /** Joins again when the group wants that; gives whether it did. */
  async renew(): Promise<boolean> {
    if (!this.#rejoining && !this.#isTold) return false
    this.#startRejoin()
    await this.#rejoining
    return true
  }

  /**
   * Keeps the member from joining again until `free` is called, so that its partitions stay its own; first waits
   * until they are surely that. Errors: PARTITION_LOST for one that has left.
   */
  async hold(): Promise<void> {
    for (;;) {
      await this.#settledIn()
      this.#holders++
      try {
        if (this.#isHeard || ((await this.#confirm()) && this.#isHeard)) return
      } catch (error) {
        this.free()
        throw error
      }
      this.free()
      await delay(LOOK_MS)
    }
  }

  /** Called by who holds: joins again where the group does not know this member as it is now, and holds again. */
  async holdAnew(): Promise<void> {
    if (await this.#confirm()) return
    this.free()
    try {
      await this.hold()
    } catch (error) {
      this.#holders++
      throw error
    }
  }

  /**
   * Stores the positions past repetitions at the end of lanes, since no commit will: other members would wait for
   * them.
   */
  async tidy(): Promise<void> {
    const idle = new Map([...this.lanes].filter(([, lane]) => lane.isIdle))
    if (idle.size === 0) return
    await this.hold()
    try {
      if (await this.#store(idle)) for (const lane of idle.values()) lane.settle(lane.position)
    } finally {
      this.free()
    }
  }

  free(): void {
    this.#holders--
    this.#options.wake.raise()
  }

  /** No more joining: it leaves, or leaves its seat to another reader of this process. */
  stop(): void {
    this.#leaving = true
    this.#options.wake.raise()
  }

  /** Leaves without waiting for anybody to take over. */
  hurry(): void {
    this.#hurry = true
    this.stop()
  }

  /** Asks one that stops for its seat. */
  claim(): void {
    this.#claimed = true
    this.#options.wake.raise()
  }

  /** Resolves when the member has left and closed its connections, or when another reader has its seat. */
  async vacate(): Promise<Estate | undefined> {
    const { wake } = this.#options
    const deadline = Date.now() + LINGER_MS
    for (;;) {
      await this.#rejoining
      if (this.#holders > 0 || this.#rejoining) await wake.wait(LOOK_MS)
      else if (this.#claimed || this.#hurry || Date.now() >= deadline) break
      else await wake.wait(Math.min(LOOK_MS, deadline - Date.now()))
    }
    this.#left = true
    clearInterval(this.#timer)
    for (const p of this.lanes.keys()) this.#forget(p)
    if (this.#claimed) return { cluster: this.cluster, membership: this.#membership }
    try {
      await this.#membership.leave(this.#parts.log.cluster)
    } finally {
      await this.cluster.disconnect()
    }
    return undefined
  }

  get #isHeard(): boolean {
    return this.#membership.silence < this.#parts.client.timeouts.session / 4
  }

  /** Waits until no joining is under way. */
  async #settledIn(): Promise<void> {
    for (;;) {
      if (this.#left) throw departed(this.#options.topic, this.#options.group)
      if (!this.#rejoining) return
      await this.#rejoining
    }
  }

  /** Whether the group knows the member as it is; otherwise it joins again as soon as nobody holds. */
  async #confirm(): Promise<boolean> {
    const heard = await this.#membership.heartbeat()
    if (heard === 'member') return true
    this.#startRejoin()
    return false
  }

  async #beat(): Promise<void> {
    try {
      this.#options.check()
      // A heartbeat may take its time when a broker is away.
      if (this.#joining || this.#beating) return
      this.#beating = true
      try {
        if ((await this.#membership.heartbeat()) !== 'member') this.#isTold = true
      } finally {
        this.#beating = false
      }
      this.#options.wake.raise()
    } catch (cause) {
      this.#options.failed(cause)
    }
  }

  #startRejoin(): void {
    if (this.#rejoining || this.#leaving) return
    this.#isTold = false
    this.#rejoining = this.#join()
      .catch(this.#options.failed)
      .finally(() => {
        this.#rejoining = undefined
        this.#options.wake.raise()
      })
  }

  async #join(): Promise<void> {
    // Nothing of this member may be committed once another one has the partitions.
    while (this.#holders > 0 && !this.#leaving) await this.#options.wake.wait(LOOK_MS)
    this.#joining = true
    const { assigned, continuous } = await this.#membership
      .join(() => this.#leaving)
      .finally(() => {
        this.#joining = false
      })
    const gone = [...this.lanes.keys()].filter(p => !assigned.includes(p))
    const adopted = await this.#adopt(continuous ? assigned.filter(p => !this.lanes.has(p)) : assigned)
    this.#lose([...gone, ...[...adopted.keys()].filter(p => this.lanes.has(p))])
    for (const [p, lane] of adopted) this.lanes.set(p, lane)
  }

  /** Takes the partitions over from whoever had them, and finds where to go on: not where that is known already. */
  async #adopt(partitions: readonly number[]): Promise<Map<number, Lane>> {
    if (partitions.length === 0) return new Map()
    const { log, transactions } = this.#parts
    const { group, topic, from } = this.#options
    await Promise.all(
      partitions.map(p => transactions.fence(log.cluster, log.names.transactionalId(group, topic, p))),
    )
    const [positions, beginnings] = await Promise.all([
      log.stablePositions(group, topic),
      log.beginnings(topic),
    ])
    const moved = partitions.filter(p => this.lanes.get(p)?.committed !== positions[p]!.offset)
    const lanes = new Map(moved.map(p => [p, this.#laneAt(p, positions[p]!, beginnings.get(p)!)]))
    await this.#keep(new Map([...lanes].filter(([p]) => !positions[p]!.stored && !from?.has(p))))
    return lanes
  }

  /**
   * Stores where a group begins, and that it did: a cluster forgets the positions of a group that was away for
   * long (`offsets.retention.minutes`), and beginning once more would do everything twice.
   */
  async #keep(lanes: ReadonlyMap<number, Lane>): Promise<void> {
    if (lanes.size === 0) return
    const { log, began } = this.#parts
    const { group, topic } = this.#options
    await log.meta.refresh()
    for (const p of lanes.keys()) {
      if (log.meta.hasBegun(group, topic, p)) throw forgottenPosition(group, topic, p)
    }
    if (await this.#store(lanes)) await began(group, topic, [...lanes.keys()])
  }

  /** Stores where lanes are. */
  async #store(lanes: ReadonlyMap<number, Lane>): Promise<boolean> {
    const positions = new Map(
      [...lanes].map(([p, lane]) => {
        return [p, { offset: lane.position, metadata: seenText(lane.seenBelow(lane.position)) }]
      }),
    )
    const isStored = await this.#membership.store(positions)
    if (!isStored) this.#isTold = true
    return isStored
  }

  #laneAt(partition: number, { offset, stored, seen }: CommittedPosition, beginning: number): Lane {
    const { topic, group, from } = this.#options
    const present = stored ? offset : beginning
    const start = from?.get(partition) ?? present
    if (start < beginning)
      throw goneRecords(group, { topic, partition, offset: start }, beginning, from?.has(partition) ?? false)
    return new Lane(start, start === offset ? seen : {}, from?.has(partition) && !stored ? 0 : present)
  }

  #lose(partitions: readonly number[]): void {
    if (partitions.length === 0) return
    for (const p of partitions) {
      this.lanes.delete(p)
      this.#forget(p)
    }
    if (!this.#leaving) this.#options.lost(partitions)
  }

  #forget(partition: number): void {
    const { log, transactions } = this.#parts
    transactions.forget(log.names.transactionalId(this.#options.group, this.#options.topic, partition))
  }
}

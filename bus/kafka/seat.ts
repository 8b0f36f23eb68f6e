/**
 * A reader's seat in its consumer group: which partitions are its own, and while a commit for them is under way,
 * that they stay so.
 *
 * When the group is shared out anew, commits under way are settled first, then the member joins again; what went to
 * another member is lost. A member that was put out of the group (the machine slept) and gets a partition back on
 * which nobody went on meanwhile keeps what it did of it.
 */
import type { Topic } from '../../schemas/types.ts'
import { Adoption } from './adoption.ts'
import type { Client, Cluster } from './client.ts'
import type { ClusterLog } from './cluster-log.ts'
import { departed } from './faults.ts'
import type { Lane } from './lane.ts'
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
  readonly #adoption: Adoption
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
    const { client, log, transactions, began } = parts
    const { group, topic, from } = options
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
    this.#adoption = new Adoption({
      ...{ log, transactions, topic, group, from },
      store: lanes => this.#store(lanes),
      began: partitions => began(group, topic, partitions),
    })
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
    const wanted = continuous ? assigned.filter(p => !this.lanes.has(p)) : assigned
    const adopted = await this.#adoption.adopt(wanted, this.lanes)
    this.#lose([...gone, ...[...adopted.keys()].filter(p => this.lanes.has(p))])
    for (const [p, lane] of adopted) this.lanes.set(p, lane)
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

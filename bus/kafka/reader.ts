/**
 * One subscription to a topic: a member of the group, which fetches the partitions that it was given while there
 * are credits, and hands records out in turn. What is fetched and not handed out is bounded (`FETCH_BYTES`).
 *
 * When the group is shared out anew, commits under way are settled first, then the member joins again; what went
 * to another member is abandoned. A member leaves when it is unsubscribed, or, where it came to its own end, when
 * everything that it handed out is committed: another member would else do it again.
 */
import type { Subscriber, Subscription } from 'rxjs'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import { CreditLedger } from '../credits.ts'
import type { Delivery, Position, ReadOptions } from '../port.ts'
import type { Client, Cluster } from './client.ts'
import { type ClusterLog, type CommittedPosition, noSuchPosition } from './cluster-log.ts'
import { deliver, prepare } from './delivery.ts'
import { kafkaFault } from './faults.ts'
import { fetchPartitions } from './fetch.ts'
import { Lane, sizeOf } from './lane.ts'
import { Membership } from './membership.ts'
import type { KafkaCodec } from './options.ts'
import type { Member } from './requests.ts'
import { delay, retrying } from './retrying.ts'
import { Signal } from './signal.ts'
import type { Transactions } from './transactions.ts'

/** What is handed out without giving the event loop a turn, at most. */
const BURST_RECORDS = 256
/** What is asked for at once, and less where the credits are less. */
const FETCH_BYTES = 8 << 20
const LEAST_FETCH_BYTES = 64 << 10
const FETCH_WAIT_MS = 250
/** How often a member at the end looks whether the topic was sealed, and the others are done. */
const LOOK_MS = 100

export interface ReaderParts {
  readonly client: Client
  readonly log: ClusterLog
  readonly codec: KafkaCodec
  readonly transactions: Transactions
}

export class Reader<T extends Topic = Topic> {
  readonly topic: T
  readonly group: string
  readonly #parts: ReaderParts
  readonly #options: ReadOptions
  readonly #subscriber: Subscriber<Delivery<T>>
  readonly #cluster: Cluster
  readonly #membership: Membership
  readonly #credits: CreditLedger
  readonly #fetchBytes: number
  readonly #lanes = new Map<number, Lane>()
  readonly #wake = new Signal()
  readonly #released: Subscription | undefined
  readonly #finished: Promise<void>
  #stops: readonly number[] | undefined
  #turn = 0
  #rejoin = false
  #rejoining: Promise<void> | undefined
  #holders = 0
  #progressAt = Date.now()
  #lookedAt = 0
  #pumping = false
  /** No more is handed out. */
  #ended = false
  /** It leaves as soon as it can. */
  #leaving = false

  constructor(parts: ReaderParts, topic: T, options: ReadOptions, subscriber: Subscriber<Delivery<T>>) {
    this.#parts = parts
    this.topic = topic
    this.group = options.group
    this.#options = options
    this.#subscriber = subscriber
    this.#credits = new CreditLedger(options.credits)
    this.#fetchBytes = Math.max(LEAST_FETCH_BYTES, Math.min(FETCH_BYTES, options.credits.bytes))
    const { client, log } = parts
    this.#cluster = client.cluster()
    const groupId = log.names.group(options.group)
    this.#membership = new Membership(
      this.#cluster,
      groupId,
      log.names.topic(topic),
      log.partitions(topic),
      client.timeouts,
    )
    this.#released = options.released$?.subscribe(places => {
      for (const place of places) if (place.topic === topic) this.#credits.release(place)
      this.#moved()
    })
    this.#finished = this.#run()
  }

  /** Resolves when it left the group and closed its connections. */
  get finished(): Promise<void> {
    return this.#finished
  }

  /** It hands out no more, and may only wait for what it did to be committed. */
  get ended(): boolean {
    return this.#ended
  }

  /** As the group knows it at present. */
  get member(): Member {
    return this.#membership.member
  }

  lane(partition: number): Lane | undefined {
    return this.#lanes.get(partition)
  }

  /**
   * Keeps the member from joining again until `free` is called, so that its partitions stay its own; first waits
   * until they are surely that.
   */
  async hold(): Promise<void> {
    const { session } = this.#parts.client.timeouts
    while (!this.#leaving) {
      await this.#rejoining
      if (this.#rejoining) continue
      this.#holders++
      if (this.#membership.silence < session / 4) return
      const heard = await this.#membership.heartbeat()
      if (heard === 'member' && this.#membership.silence < session / 4) return
      this.free()
      if (heard !== 'member') this.#startRejoin(heard === 'expelled')
      await delay(LOOK_MS)
    }
    this.#holders++
  }

  free(): void {
    this.#holders--
    this.#wake.raise()
  }

  /** A commit of this process moved positions. */
  settled(positions: readonly Position[]): void {
    for (const { topic, partition, offset } of positions) {
      if (topic !== this.topic) continue
      this.#credits.settle(partition, offset)
      this.#lanes.get(partition)?.settle(offset)
    }
    this.#moved()
  }

  fail(error: unknown): void {
    if (this.#ended) return
    this.#ended = true
    this.#leaving = true
    this.#wake.raise()
    this.#subscriber.error(error)
  }

  /** Unsubscribed: by the subscriber, or because the stream ended. */
  close(): void {
    if (!this.#ended) this.#leaving = true
    this.#ended = true
    this.#released?.unsubscribe()
    this.#wake.raise()
  }

  /** Leaves without waiting for what was handed out. */
  leave(): void {
    this.#leaving = true
    this.close()
  }

  async #run(): Promise<void> {
    const { session } = this.#parts.client.timeouts
    let timer: NodeJS.Timeout | undefined
    try {
      await this.#cluster.connect()
      await this.#cluster.addMultipleTargetTopics([this.#parts.log.names.topic(this.topic)])
      await this.#start()
      timer = setInterval(() => void this.#beat(), session / 15)
      await this.#loop()
    } catch (cause) {
      this.fail(kafkaFault(this.#parts.client.brokers, 'read', cause))
    } finally {
      clearInterval(timer)
      await this.#depart()
    }
  }

  async #start(): Promise<void> {
    const { log } = this.#parts
    const { until, from } = this.#options
    if (until === 'end') this.#stops = await log.ends(this.topic)
    if (from) {
      const ends = this.#stops ?? (await log.ends(this.topic))
      for (const [p, offset] of from) {
        if (offset < 0 || !(offset <= (ends[p] ?? -1)))
          throw noSuchPosition(this.topic, p, offset, ends[p] ?? 0)
      }
    }
    await this.#join(false)
  }

  async #loop(): Promise<void> {
    while (!this.#leaving) {
      if (this.#rejoin) {
        this.#startRejoin(false)
        await this.#rejoining
        continue
      }
      if (this.#ended && this.#credits.inFlight.records === 0) return
      this.#pump()
      if (!this.#ended && (await this.#isComplete())) {
        this.#ended = true
        this.#subscriber.complete()
        continue
      }
      const cursors = this.#ended ? new Map<number, number>() : this.#wanted()
      if (cursors.size === 0) await this.#wake.wait(LOOK_MS)
      else await this.#fetch(cursors)
    }
  }

  /**
   * Where to read on: in no partition while credits are out, and in none of which enough is at hand. Each has a
   * share of its own, since what waits of one may be of no use until a record of another comes. Who has least
   * comes first, since an answer may be full before it comes to the last.
   */
  #wanted(): Map<number, number> {
    if (!this.#credits.open) return new Map()
    const enough = this.#share() / 2
    const own = [...this.#lanes].filter(
      ([p, { position, queuedBytes }]) => position < this.#stopOf(p) && queuedBytes < enough,
    )
    own.sort(([, a], [, b]) => a.queuedBytes - b.queuedBytes)
    return new Map(own.map(([p, { position }]) => [p, position]))
  }

  /** What is asked for of one partition, in bytes. */
  #share(): number {
    return Math.max(LEAST_FETCH_BYTES, this.#fetchBytes / Math.max(1, this.#lanes.size))
  }

  #stopOf(partition: number): number {
    return this.#options.until === 'end' ? this.#stops![partition]! : Number.POSITIVE_INFINITY
  }

  async #fetch(cursors: ReadonlyMap<number, number>): Promise<void> {
    const { log, codec } = this.#parts
    // While anything is at hand, what can be done with it must not wait for more.
    const waiting = [...this.#lanes.values()].every(lane => lane.queued === 0)
    const limits = {
      maxBytes: this.#fetchBytes,
      partitionBytes: Math.floor(this.#share()),
      maxWait: waiting ? FETCH_WAIT_MS : 0,
    }
    const name = log.names.topic(this.topic)
    const fetched = await retrying(
      this.#cluster,
      () => fetchPartitions(this.#cluster, name, cursors, limits),
      { stopped: () => this.#leaving },
    )
    for (const [p, { records, next }] of fetched) {
      await prepare(codec, this.topic, records, () => log.meta.refresh())
      const lane = this.#lanes.get(p)
      // Lost or set anew while the answer was on its way.
      if (!lane || lane.position !== cursors.get(p)) continue
      const stop = this.#stopOf(p)
      lane.fetched(
        stop === Number.POSITIVE_INFINITY ? records : records.filter(({ offset }) => Number(offset) < stop),
        next,
      )
    }
  }

  #moved(): void {
    this.#progressAt = Date.now()
    this.#pump()
    this.#wake.raise()
  }

  /** Hands out what credits allow; goes on by itself after giving the event loop a turn. */
  #pump(): void {
    if (this.#pumping || this.#ended || this.#rejoining) return
    this.#pumping = true
    try {
      for (let count = 0; !this.#ended; count++) {
        if (count === BURST_RECORDS) {
          setImmediate(() => this.#pump())
          return
        }
        if (!this.#emitNext()) return
      }
    } catch (cause) {
      this.fail(kafkaFault(this.#parts.client.brokers, 'read', cause))
    } finally {
      this.#pumping = false
    }
  }

  /** Hands out the next record that there are credits for; false when there is none. */
  #emitNext(): boolean {
    const count = this.#parts.log.partitions(this.topic)
    const first = this.#turn
    for (let i = 0; i < count; i++) {
      const partition = (first + i) % count
      if (!this.#lanes.get(partition)?.queued) continue
      if (this.#emit(partition)) return true
      // It is this partition's turn, unless others have a right of their own.
      if (!this.#credits.open) return false
    }
    return false
  }

  /** False when there are no credits for the partition's next record. */
  #emit(partition: number): boolean {
    const lane = this.#lanes.get(partition)!
    const message = lane.next
    const offset = Number(message.offset)
    if (!this.#credits.take({ partition, offset }, sizeOf(message))) return false
    const isNew = lane.take()
    this.#turn = partition + 1
    if (!isNew) {
      this.#credits.release({ partition, offset })
      return true
    }
    this.#progressAt = Date.now()
    this.#subscriber.next(deliver(this.#parts.codec, this.topic, partition, message))
    return true
  }

  /** Whether everything there will be was handed out, here and by the others. */
  async #isComplete(): Promise<boolean> {
    const { until } = this.#options
    if (until === 'never' || [...this.#lanes.values()].some(lane => lane.queued > 0)) return false
    const { log } = this.#parts
    const partitions = log.partitions(this.topic)
    // Asking the cluster takes its time, and the loop comes by here often.
    if ((until === 'sealed' || this.#lanes.size < partitions) && !this.#isTimeToLook()) return false
    const stops = until === 'end' ? this.#stops! : await this.#sealedStops()
    if (!stops || this.#rejoin) return false
    for (const [p, { position }] of this.#lanes) if (position < stops[p]!) return false
    if (this.#lanes.size === partitions) return true
    const positions = await log.positions(this.group, this.topic)
    for (const [p, stop] of stops.entries()) {
      const { offset } = positions[p]!
      if (this.#lanes.has(p) || offset >= stop) continue
      if (!(await log.isEmpty(this.topic, p, offset, stop))) return false
    }
    return true
  }

  async #sealedStops(): Promise<readonly number[] | undefined> {
    const { log } = this.#parts
    await log.meta.refresh()
    return log.sealedEnds(this.topic)
  }

  #isTimeToLook(): boolean {
    const now = Date.now()
    if (now - this.#lookedAt < LOOK_MS) return false
    this.#lookedAt = now
    return true
  }

  async #beat(): Promise<void> {
    try {
      const { stuck } = this.#parts.client.timeouts
      const { records } = this.#credits.inFlight
      if (records > 0 && Date.now() - this.#progressAt > stuck) throw this.#stuckError(records)
      if (this.#rejoining) return
      const heard = await this.#membership.heartbeat()
      if (heard === 'expelled') this.#startRejoin(true)
      else if (heard === 'rebalance') this.#rejoin = true
      this.#wake.raise()
    } catch (cause) {
      this.fail(kafkaFault(this.#parts.client.brokers, 'read', cause))
    }
  }

  #stuckError(records: number): GraspError {
    const minutes = Math.round((Date.now() - this.#progressAt) / 60_000)
    return new GraspError(
      'STAGE_FAILED',
      `group ${this.group} holds ${records} record(s) of ${this.topic} and has finished none for ${minutes} ` +
        'minute(s): it gives its partitions up; raise log.timeouts.stuck if its work takes longer',
    )
  }

  #startRejoin(expelled: boolean): void {
    if (this.#rejoining || this.#leaving) return
    this.#rejoin = false
    this.#rejoining = this.#join(expelled)
      .catch(cause => this.fail(kafkaFault(this.#parts.client.brokers, 'read', cause)))
      .finally(() => {
        this.#rejoining = undefined
        this.#wake.raise()
      })
  }

  async #join(expelled: boolean): Promise<void> {
    // Nothing of this member may be committed once another one has the partitions.
    while (this.#holders > 0 && !this.#leaving) await this.#wake.wait(LOOK_MS)
    if (expelled) this.#lose([...this.#lanes.keys()])
    const owned = [...this.#lanes.keys()]
    // Nobody may see positions that are older than the last commit.
    if (owned.length > 0) await this.#parts.log.positions(this.group, this.topic)
    const assigned = await this.#membership.join(owned, () => this.#leaving)
    this.#lose(owned.filter(p => !assigned.includes(p)))
    await this.#adopt(assigned.filter(p => !this.#lanes.has(p)))
  }

  /** Takes the partitions over from whoever had them, and finds where to go on. */
  async #adopt(partitions: readonly number[]): Promise<void> {
    if (partitions.length === 0) return
    const { log, transactions } = this.#parts
    await Promise.all(
      partitions.map(p =>
        transactions.fence(log.cluster, log.names.transactionalId(this.group, this.topic, p)),
      ),
    )
    const [positions, beginnings] = await Promise.all([
      log.positions(this.group, this.topic),
      log.beginnings(this.topic),
    ])
    for (const p of partitions) this.#lanes.set(p, this.#laneAt(p, positions[p]!, beginnings.get(p)!))
  }

  #laneAt(partition: number, { offset, seen }: CommittedPosition, beginning: number): Lane {
    const start = this.#options.from?.get(partition) ?? offset
    return new Lane(Math.max(start, beginning), start === offset ? seen : {})
  }

  #lose(partitions: readonly number[]): void {
    if (partitions.length === 0) return
    for (const p of partitions) {
      this.#lanes.delete(p)
      this.#credits.settle(p, Number.POSITIVE_INFINITY)
    }
    if (!this.#leaving) this.#options.onLost?.(partitions)
  }

  async #depart(): Promise<void> {
    while (this.#holders > 0) await this.#wake.wait(LOOK_MS)
    this.#released?.unsubscribe()
    await this.#rejoining
    await this.#membership.leave(this.#parts.log.cluster)
    await this.#cluster.disconnect()
  }
}

/**
 * One subscription to a topic: a member of the group (see `seat.ts`), which fetches the partitions that it was given
 * while there are credits, and hands records out in turn. What is fetched and not handed out is bounded
 * (`FETCH_BYTES`).
 *
 * A member leaves when it is unsubscribed, or, where it came to its own end, when everything that it handed out is
 * committed: another member would else do it again.
 */
import type { Subscriber, Subscription } from 'rxjs'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import { CreditLedger } from '../credits.ts'
import type { Delivery, Position, ReadOptions } from '../port.ts'
import { noSuchPosition } from './cluster-log.ts'
import { deliver, prepare } from './delivery.ts'
import { goneRecords, kafkaFault, typeOf } from './faults.ts'
import { fetchPartitions } from './fetch.ts'
import { type Lane, sizeOf } from './lane.ts'
import type { KafkaCodec } from './options.ts'
import type { Member } from './requests.ts'
import { retrying } from './retrying.ts'
import { type Estate, Seat, type SeatParts } from './seat.ts'
import { Signal } from './signal.ts'
import { Undecided } from './undecided.ts'

/** What is handed out without giving the event loop a turn, at most. */
const BURST_RECORDS = 256
/** What is asked for at once, and less where the credits are less. */
const FETCH_BYTES = 8 << 20
const LEAST_FETCH_BYTES = 64 << 10
const FETCH_WAIT_MS = 250
/** How often a member at the end looks whether the topic was sealed, and the others are done. */
const LOOK_MS = 100

export interface ReaderParts extends SeatParts {
  readonly codec: KafkaCodec
}

export class Reader<T extends Topic = Topic> {
  readonly topic: T
  readonly group: string
  readonly #parts: ReaderParts
  readonly #options: ReadOptions
  readonly #subscriber: Subscriber<Delivery<T>>
  readonly #seat: Seat
  readonly #credits: CreditLedger
  readonly #fetchBytes: number
  readonly #lanes: ReadonlyMap<number, Lane>
  readonly #wake = new Signal()
  readonly #undecided: Undecided
  readonly #released: Subscription | undefined
  readonly #finished: Promise<Estate | undefined>
  #stops: readonly number[] | undefined
  #turn = 0
  #progressAt = Date.now()
  #lookedAt = 0
  #pumping = false
  /** No more is handed out. */
  #ended = false
  /** It leaves as soon as it can. */
  #leaving = false
  #inherited = false

  /** `estate`: of a reader before this one, in whose seat it goes on. */
  constructor(
    parts: ReaderParts,
    topic: T,
    options: ReadOptions,
    subscriber: Subscriber<Delivery<T>>,
    estate?: Estate,
  ) {
    this.#parts = parts
    this.topic = topic
    this.group = options.group
    this.#options = options
    this.#subscriber = subscriber
    this.#credits = new CreditLedger(options.credits)
    this.#fetchBytes = Math.max(LEAST_FETCH_BYTES, Math.min(FETCH_BYTES, options.credits.bytes))
    const seat = {
      topic,
      group: options.group,
      from: options.from,
      wake: this.#wake,
      lost: (partitions: readonly number[]) => this.#lost(partitions),
      check: () => this.#check(),
      failed: (cause: unknown) => this.#failed(cause),
    }
    const { away, transaction } = parts.client.timeouts
    this.#undecided = new Undecided(parts.log.names.topic(topic), Math.max(away, 2 * transaction))
    this.#seat = new Seat(parts, seat, estate)
    this.#lanes = this.#seat.lanes
    this.#released = options.released$?.subscribe(places => {
      for (const place of places) if (place.topic === topic) this.#credits.release(place)
      this.#moved()
    })
    this.#finished = this.#run()
  }

  /** Resolves when it left the group and closed its connections, with what it leaves to one that asked for it. */
  get finished(): Promise<Estate | undefined> {
    return this.#finished
  }

  /** It hands out no more, and may only wait for what it did to be committed. */
  get ended(): boolean {
    return this.#ended
  }

  /** It was unsubscribed and still has its seat. */
  get leaving(): boolean {
    return this.#leaving
  }

  /** As the group knows it at present. */
  get member(): Member {
    return this.#seat.member
  }

  lane(partition: number): Lane | undefined {
    return this.#lanes.get(partition)
  }

  /** See `Seat`. */
  hold(): Promise<void> {
    return this.#seat.hold()
  }

  holdAnew(): Promise<void> {
    return this.#seat.holdAnew()
  }

  free(): void {
    this.#seat.free()
  }

  /** Another reader of this process wants its seat; undefined when it is gone. */
  async succeed(): Promise<Estate | undefined> {
    if (this.#inherited) return undefined
    this.#inherited = true
    this.#seat.claim()
    return this.#finished
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
    this.#stop()
    if (this.#ended) return
    this.#ended = true
    this.#subscriber.error(error)
  }

  /** Unsubscribed: by the subscriber, or because the stream ended. */
  close(): void {
    if (!this.#ended) this.#stop()
    this.#ended = true
    this.#released?.unsubscribe()
    this.#wake.raise()
  }

  /** Leaves without waiting for what was handed out, or for a successor. */
  leave(): void {
    this.#stop()
    this.#seat.hurry()
    this.close()
  }

  #stop(): void {
    this.#leaving = true
    this.#seat.stop()
  }

  #failed(cause: unknown): void {
    this.fail(kafkaFault(this.#parts.client.brokers, 'read', cause))
  }

  async #run(): Promise<Estate | undefined> {
    try {
      await this.#start()
      await this.#loop()
    } catch (cause) {
      this.#failed(cause)
    }
    try {
      return await this.#seat.vacate()
    } catch (cause) {
      this.#failed(cause)
      return undefined
    } finally {
      this.#released?.unsubscribe()
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
    await this.#seat.take()
    this.#options.onJoined?.()
  }

  async #loop(): Promise<void> {
    while (!this.#leaving) {
      if (await this.#seat.renew()) continue
      if (this.#ended && !this.#isOwing) return
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

  get #isOwing(): boolean {
    return [...this.#lanes.values()].some(lane => lane.isOwing)
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
      this.#seat.cluster,
      () => fetchPartitions(this.#seat.cluster, name, cursors, limits),
      { stopped: () => this.#leaving },
    ).catch(async cause => {
      throw (await this.#gone(cause)) ?? cause
    })
    for (const [p, answer] of fetched) {
      this.#undecided.look(p, answer)
      const { records, next } = answer
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

  /** Where records were removed that were to be read next. */
  async #gone(cause: unknown): Promise<GraspError | undefined> {
    if (typeOf(cause) !== 'OFFSET_OUT_OF_RANGE') return undefined
    const beginnings = await this.#parts.log.beginnings(this.topic)
    for (const [partition, { position: offset }] of this.#lanes) {
      const beginning = beginnings.get(partition)!
      if (offset < beginning)
        return goneRecords(
          this.group,
          { topic: this.topic, partition, offset },
          beginning,
          this.#options.from !== undefined,
        )
    }
    return undefined
  }

  #moved(): void {
    this.#progressAt = Date.now()
    this.#pump()
    this.#wake.raise()
  }

  /** Hands out what credits allow; goes on by itself after giving the event loop a turn. */
  #pump(): void {
    if (this.#pumping || this.#ended || !this.#seat.steady) return
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
      this.#failed(cause)
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
    if (!stops || !this.#seat.steady) return false
    for (const [p, { position }] of this.#lanes) if (position < stops[p]!) return false
    if (this.#lanes.size === partitions) return true
    await this.#seat.tidy()
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

  #check(): void {
    const { stuck } = this.#parts.client.timeouts
    const { records } = this.#credits.inFlight
    if (records > 0 && Date.now() - this.#progressAt > stuck) throw this.#stuckError(records)
  }

  #stuckError(records: number): GraspError {
    const minutes = Math.round((Date.now() - this.#progressAt) / 60_000)
    return new GraspError(
      'STAGE_FAILED',
      `group ${this.group} holds ${records} record(s) of ${this.topic} and has finished none for ${minutes} ` +
        'minute(s): it gives its partitions up; raise log.timeouts.stuck if its work takes longer',
    )
  }

  #lost(partitions: readonly number[]): void {
    for (const p of partitions) this.#credits.settle(p, Number.POSITIVE_INFINITY)
    this.#options.onLost?.(partitions)
  }
}

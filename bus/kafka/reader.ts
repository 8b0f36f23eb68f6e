/**
 * One subscription to a topic: a member of the group (seat.ts), which fetches the partitions that it was given while
 * there are credits (fetching.ts), and hands records out in turn (hand-out.ts) until it comes to its end
 * (completion.ts). What is fetched and not handed out is bounded.
 *
 * A member leaves when it is unsubscribed, or, where it came to its own end, when everything that it handed out is
 * committed: another member would else do it again.
 */
import type { Subscriber, Subscription } from 'rxjs'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import type { Delivery, Position, ReadOptions } from '../port.ts'
import { noSuchPosition } from './cluster-log.ts'
import { Completion, LOOK_MS } from './completion.ts'
import { kafkaFault } from './faults.ts'
import { Fetching } from './fetching.ts'
import { HandOut } from './hand-out.ts'
import type { Lane } from './lane.ts'
import type { KafkaCodec } from './options.ts'
import type { Member } from './requests.ts'
import { type Estate, Seat, type SeatParts } from './seat.ts'
import { Signal } from './signal.ts'

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
  readonly #lanes: ReadonlyMap<number, Lane>
  readonly #completion: Completion
  readonly #fetching: Fetching
  readonly #handOut: HandOut<T>
  readonly #wake = new Signal()
  readonly #released: Subscription | undefined
  readonly #finished: Promise<Estate | undefined>
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
    const { client, log, codec } = parts
    const seat = {
      topic,
      group: options.group,
      from: options.from,
      wake: this.#wake,
      lost: (partitions: readonly number[]) => this.#lost(partitions),
      check: () => this.#check(),
      failed: (cause: unknown) => this.#failed(cause),
    }
    this.#seat = new Seat(parts, seat, estate)
    const { cluster, lanes } = this.#seat
    this.#lanes = lanes
    this.#completion = new Completion(log, topic, options, this.#seat)
    this.#fetching = new Fetching({
      ...{ client, log, codec, cluster, topic, lanes },
      group: options.group,
      bytes: options.credits.bytes,
      stopOf: partition => this.#completion.stopOf(partition),
      given: options.from !== undefined,
      stopped: () => this.#leaving,
    })
    this.#handOut = new HandOut({
      ...{ codec, topic, lanes },
      partitions: log.partitions(topic),
      credits: options.credits,
      ready: () => !this.#ended && this.#seat.steady,
      next: delivery => this.#subscriber.next(delivery),
      failed: cause => this.#failed(cause),
    })
    this.#released = options.released$?.subscribe(places => {
      for (const place of places) if (place.topic === topic) this.#handOut.release(place)
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
      this.#handOut.settle(partition, offset)
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
    const { from } = this.#options
    const stops = await this.#completion.find()
    if (from) {
      const ends = stops ?? (await this.#parts.log.ends(this.topic))
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
      this.#handOut.pump()
      if (!this.#ended && (await this.#completion.isReached())) {
        this.#ended = true
        this.#subscriber.complete()
        continue
      }
      // Nothing is read while credits are out.
      const isWanting = !this.#ended && this.#handOut.open
      const positions = isWanting ? this.#fetching.wanted() : new Map<number, number>()
      if (positions.size === 0) await this.#wake.wait(LOOK_MS)
      else await this.#fetching.fetch(positions)
    }
  }

  get #isOwing(): boolean {
    return [...this.#lanes.values()].some(lane => lane.isOwing)
  }

  #moved(): void {
    this.#handOut.resume()
    this.#wake.raise()
  }

  #check(): void {
    const { held, idle } = this.#handOut
    if (held === 0 || idle <= this.#parts.client.timeouts.stuck) return
    throw new GraspError(
      'STAGE_FAILED',
      `group ${this.group} holds ${held} record(s) of ${this.topic} and has finished none for ` +
        `${Math.round(idle / 60_000)} minute(s): it gives its partitions up; raise log.timeouts.stuck if its work ` +
        'takes longer',
    )
  }

  #lost(partitions: readonly number[]): void {
    for (const p of partitions) this.#handOut.settle(p, Number.POSITIVE_INFINITY)
    this.#options.onLost?.(partitions)
  }
}

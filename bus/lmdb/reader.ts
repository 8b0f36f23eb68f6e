/**
 * One subscription to a topic. It pulls: a record is read from the log when there are credits for it, so
 * nothing waits between the log and the subscriber. Partitions take turns; within one, offsets ascend.
 */
import type { Subscriber, Subscription } from 'rxjs'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import type { Codec } from '../codec.ts'
import { CreditLedger } from '../credits.ts'
import type { Delivery, Place, Position, ReadOptions } from '../port.ts'
import { deliver } from './delivery.ts'
import { logFault } from './faults.ts'
import type { Store } from './store.ts'
import type { WakeUp } from './wake-up.ts'

/** What is emitted without giving the event loop a turn, at most. */
const BURST_RECORDS = 256
const BURST_BYTES = 16 << 20

export interface ReaderParts {
  readonly store: Store
  readonly codec: Codec
  readonly wakeUp: WakeUp
}

export class Reader<T extends Topic> {
  readonly #parts: ReaderParts
  readonly #topic: T
  readonly #options: ReadOptions
  readonly #subscriber: Subscriber<Delivery<T>>
  readonly #credits: CreditLedger
  /** Next offset to emit, one a partition. */
  readonly #cursors: number[]
  /** Where to stop, one a partition. */
  readonly #stops: number[]
  readonly #released: Subscription | undefined
  #turn = 0
  /** Whether there are records that credits keep out. */
  #refused = false
  /** Of the record looked at last, encoded. */
  #size = 0
  #scheduled: NodeJS.Immediate | undefined
  #cancelSleep: (() => void) | undefined
  #closed = false

  constructor(parts: ReaderParts, topic: T, options: ReadOptions, subscriber: Subscriber<Delivery<T>>) {
    this.#parts = parts
    this.#topic = topic
    this.#options = options
    this.#subscriber = subscriber
    this.#credits = new CreditLedger(options.credits)
    parts.store.refresh()
    const ends = parts.store.ends(topic)
    this.#cursors = ends.map((_, p) => options.from?.get(p) ?? parts.store.position(topic, options.group, p))
    this.#stops = ends.map(end => (options.until === 'end' ? end : Number.POSITIVE_INFINITY))
    for (const [p, cursor] of this.#cursors.entries()) {
      if (Number.isInteger(cursor) && cursor >= 0 && cursor <= ends[p]!) continue
      throw new GraspError(
        'LOG_MISMATCH',
        `cannot read ${topic}/${p} from offset ${cursor}: the log in ${parts.store.path} ends at ${ends[p]}`,
      )
    }
    this.#released = options.released$?.subscribe(places => {
      for (const place of places) if (place.topic === topic) this.#credits.release(place)
      this.#resume()
    })
    this.#schedule()
  }

  /** A commit of this process moved positions. */
  settled(group: string, positions: readonly Position[]): void {
    if (group !== this.#options.group) return
    for (const { topic, partition, offset } of positions) {
      if (topic === this.#topic) this.#credits.settle(partition, offset)
    }
    this.#resume()
  }

  fail(error: unknown): void {
    this.close()
    this.#subscriber.error(error)
  }

  close(): void {
    this.#closed = true
    clearImmediate(this.#scheduled)
    this.#cancelSleep?.()
    this.#released?.unsubscribe()
  }

  /** Goes on when credits are back, unless it is records alone that are waited for. */
  #resume(): void {
    if (!this.#credits.open || (this.#cancelSleep && !this.#refused)) return
    this.#cancelSleep?.()
    this.#cancelSleep = undefined
    this.#schedule()
  }

  #schedule(): void {
    if (this.#closed) return
    this.#scheduled ??= setImmediate(() => {
      this.#scheduled = undefined
      try {
        this.#pump()
      } catch (cause) {
        this.fail(logFault(this.#parts.store.path, 'read', cause))
      }
    })
  }

  /** Emits what credits allow, then waits for credits, for records, or for a turn. */
  #pump(): void {
    const { store, wakeUp } = this.#parts
    store.refresh()
    const ends = store.ends(this.#topic)
    let bytes = 0
    for (let records = 0; records < BURST_RECORDS && bytes < BURST_BYTES; records++) {
      const size = this.#emitNext(ends)
      if (this.#closed) return
      if (size === undefined) {
        if (!this.#refused && this.#complete()) return
        if (this.#refused && !this.#credits.open) return
        // Also where credits are out: a partition that has none in flight may get a record.
        this.#cancelSleep = wakeUp.sleep(() => {
          this.#cancelSleep = undefined
          this.#schedule()
        })
        return
      }
      bytes += size
    }
    this.#schedule()
  }

  /** Emits the next record that there are credits for and gives its size; undefined when there is none. */
  #emitNext(ends: readonly number[]): number | undefined {
    this.#refused = false
    const first = this.#turn
    for (let i = 0; i < ends.length; i++) {
      const partition = (first + i) % ends.length
      if (this.#cursors[partition]! >= Math.min(ends[partition]!, this.#stops[partition]!)) continue
      const size = this.#emit(partition)
      if (size !== undefined) return size
      this.#refused = true
      // It is this partition's turn, unless others have a right of their own.
      if (!this.#credits.open) return undefined
    }
    return undefined
  }

  /** Emits the partition's next record and gives its size; undefined when there are no credits for it. */
  #emit(partition: number): number | undefined {
    const { store, codec } = this.#parts
    const offset = this.#cursors[partition]!
    const delivery = deliver(store, codec, this.#topic, partition, offset, this.#admit)
    if (!delivery) return undefined
    this.#cursors[partition] = offset + 1
    this.#turn = partition + 1
    this.#subscriber.next(delivery)
    return this.#size
  }

  readonly #admit = (place: Place, bytes: number): boolean => {
    this.#size = bytes
    return this.#credits.take(place, bytes)
  }

  /** Everything there is was emitted: completes when that is all there will be. */
  #complete(): boolean {
    const { until } = this.#options
    const all = until === 'end' || (until === 'sealed' && this.#parts.store.sealed(this.#topic))
    if (!all) return false
    this.close()
    this.#subscriber.complete()
    return true
  }
}

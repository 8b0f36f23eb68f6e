/**
 * Hands out what a reader has fetched: partitions take turns, each record takes credits, and a repetition of one that
 * was there before is dropped.
 */
import type { Topic } from '../../schemas/types.ts'
import { CreditLedger } from '../credits.ts'
import type { Credits, Delivery, Place } from '../port.ts'
import { deliver } from './delivery.ts'
import { type Lane, sizeOf } from './lane.ts'
import type { KafkaCodec } from './options.ts'

/** What is handed out without giving the event loop a turn, at most. */
const BURST_RECORDS = 256

export interface HandOutParts<T extends Topic> {
  readonly topic: T
  /** How many partitions the topic has. */
  readonly partitions: number
  /** The reader's own partitions. */
  readonly lanes: ReadonlyMap<number, Lane>
  readonly codec: KafkaCodec
  readonly credits: Credits
  /** False while nothing may be handed out. */
  readonly ready: () => boolean
  /** Takes what is handed out. */
  readonly next: (delivery: Delivery<T>) => void
  readonly failed: (cause: unknown) => void
}

export class HandOut<T extends Topic> {
  readonly #parts: HandOutParts<T>
  readonly #credits: CreditLedger
  /** The partition whose turn it is. */
  #turn = 0
  #progressAt = Date.now()
  #pumping = false

  constructor(parts: HandOutParts<T>) {
    this.#parts = parts
    this.#credits = new CreditLedger(parts.credits)
  }

  /** False while nothing can be handed out for want of credits. */
  get open(): boolean {
    return this.#credits.open
  }

  /** Records that hold credits. */
  get held(): number {
    return this.#credits.inFlight.records
  }

  /** Since when no record was handed out and no credits came back, in milliseconds. */
  get idle(): number {
    return Date.now() - this.#progressAt
  }

  /** Gives the credits of one record back. */
  release(place: Pick<Place, 'partition' | 'offset'>): void {
    this.#credits.release(place)
  }

  /** Gives back the credits of everything below a position. */
  settle(partition: number, position: number): void {
    this.#credits.settle(partition, position)
  }

  /** Credits came back: what they allow is handed out. */
  resume(): void {
    this.#progressAt = Date.now()
    this.pump()
  }

  /** Hands out what credits allow; goes on by itself after giving the event loop a turn. */
  pump(): void {
    const { ready, failed } = this.#parts
    if (this.#pumping || !ready()) return
    this.#pumping = true
    try {
      for (let count = 0; ready(); count++) {
        if (count === BURST_RECORDS) {
          setImmediate(() => this.pump())
          return
        }
        if (!this.#next()) return
      }
    } catch (cause) {
      failed(cause)
    } finally {
      this.#pumping = false
    }
  }

  /** Hands out the next record that there are credits for; false when there is none. */
  #next(): boolean {
    const { partitions, lanes } = this.#parts
    const first = this.#turn
    for (let i = 0; i < partitions; i++) {
      const partition = (first + i) % partitions
      const lane = lanes.get(partition)
      if (!lane?.queued) continue
      if (this.#nextOf(partition, lane)) return true
      // It is this partition's turn, unless others have a right of their own.
      if (!this.#credits.open) return false
    }
    return false
  }

  /** False when there are no credits for the partition's next record. */
  #nextOf(partition: number, lane: Lane): boolean {
    const { codec, topic, next } = this.#parts
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
    next(deliver(codec, topic, partition, message))
    return true
  }
}

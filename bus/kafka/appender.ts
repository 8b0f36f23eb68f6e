/**
 * Records outside transactions: one request at a time, and what is asked for meanwhile goes into the next. What is
 * asked for at once is in one request and one partition (`isWhole`), so it is written as a whole or not at all.
 */
import type { Producer } from 'kafkajs'
import type { Place } from '../port.ts'
import { type BatchLimits, Filling, type Prepared, sendAll } from './batches.ts'
import type { Client } from './client.ts'
import { patiently } from './retrying.ts'

interface Waiting {
  readonly prepared: readonly Prepared[]
  readonly resolve: (places: Place[]) => void
  readonly reject: (error: unknown) => void
}

export class Appender {
  readonly #client: Client
  readonly #limits: BatchLimits
  #producer: Producer | undefined
  #waiting: Waiting[] = []
  #running: Promise<void> | undefined

  constructor(client: Client, limits: BatchLimits) {
    this.#client = client
    this.#limits = limits
  }

  /** Resolves when all replicas have it. */
  append(prepared: readonly Prepared[]): Promise<Place[]> {
    const settled = new Promise<Place[]>((resolve, reject) =>
      this.#waiting.push({ prepared, resolve, reject }),
    )
    this.#running ??= this.#drain()
    return settled
  }

  async close(): Promise<void> {
    await this.#running
    if (this.#producer) await this.#client.release(this.#producer)
  }

  async #drain(): Promise<void> {
    // Lets in what is asked for in the same turn.
    await undefined
    while (this.#waiting.length > 0) {
      const batch = this.#next()
      try {
        const places = await this.#send(batch.flatMap(each => each.prepared))
        let done = 0
        for (const { prepared, resolve } of batch) {
          resolve(places.slice(done, done + prepared.length))
          done += prepared.length
        }
      } catch (error) {
        // Its sequence numbers may no longer be those that the broker expects.
        const producer = this.#producer
        this.#producer = undefined
        if (producer) void this.#client.release(producer)
        for (const { reject } of batch) reject(error)
      }
    }
    this.#running = undefined
  }

  /** As much of what waits as one request takes. */
  #next(): Waiting[] {
    const filling = new Filling(this.#limits)
    const rest = this.#waiting.findIndex(({ prepared }) => !filling.take(prepared))
    return this.#waiting.splice(0, rest < 0 ? this.#waiting.length : Math.max(1, rest))
  }

  /**
   * Over the same producer as long as it takes: where the answer to an earlier try was lost, the brokers know the
   * records by their sequence numbers.
   */
  async #send(prepared: readonly Prepared[]): Promise<Place[]> {
    const { compression } = this.#client
    const patience = { patience: this.#client.timeouts.away, stopped: () => this.#client.closed }
    const producer = await patiently(() => this.#connected(), patience)
    return patiently(() => sendAll(producer.sendBatch, prepared, this.#limits, compression), patience)
  }

  async #connected(): Promise<Producer> {
    if (this.#producer) return this.#producer
    const producer = this.#client.idempotentProducer()
    try {
      await producer.connect()
    } catch (error) {
      await this.#client.release(producer)
      throw error
    }
    this.#producer = producer
    return producer
  }
}

/**
 * Records outside transactions: one request at a time, and what is asked for meanwhile goes into the next. What is
 * asked for at once is in one request and one partition (`isWhole`), so it is written as a whole or not at all.
 */
import { Partitioners, type Producer } from 'kafkajs'
import type { Place } from '../port.ts'
import { type BatchLimits, Filling, type Prepared, sendAll } from './batches.ts'
import type { Client } from './client.ts'

interface Waiting {
  readonly prepared: readonly Prepared[]
  readonly resolve: (places: Place[]) => void
  readonly reject: (error: unknown) => void
}

export class Appender {
  readonly #client: Client
  readonly #limits: BatchLimits
  #producer: Promise<Producer> | undefined
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
    await (await this.#producer)?.disconnect()
  }

  async #drain(): Promise<void> {
    // Lets in what is asked for in the same turn.
    await undefined
    while (this.#waiting.length > 0) {
      const batch = this.#next()
      try {
        this.#producer ??= this.#connect()
        const producer = await this.#producer
        const all = batch.flatMap(each => each.prepared)
        const places = await sendAll(producer.sendBatch, all, this.#limits, this.#client.compression)
        let done = 0
        for (const { prepared, resolve } of batch) {
          resolve(places.slice(done, done + prepared.length))
          done += prepared.length
        }
      } catch (error) {
        // Its sequence numbers may no longer be those that the broker expects.
        this.#producer?.then(
          producer => producer.disconnect(),
          () => {},
        )
        this.#producer = undefined
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

  async #connect(): Promise<Producer> {
    const producer = this.#client.kafka.producer({
      idempotent: true,
      allowAutoTopicCreation: false,
      createPartitioner: Partitioners.DefaultPartitioner,
    })
    await producer.connect()
    return producer
  }
}

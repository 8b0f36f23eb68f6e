/**
 * What a log knows about itself: notes, seals and schemas, in a compacted topic of one partition (key → JSON).
 * Every process keeps a copy and reads on from where it was when it needs to know.
 */
import type { Topic } from '../../schemas/types.ts'
import type { SchemaStore } from '../codec.ts'
import type { Cluster } from './client.ts'
import { undecided } from './faults.ts'
import { fetchPartitions } from './fetch.ts'
import { delay, PATIENCE_MS, retrying } from './retrying.ts'

const LIMITS = { maxBytes: 4 << 20, maxWait: 0 }
const LOOK_MS = 5
const MOST_LOOK_MS = 200

/** The offset where each partition of a sealed topic ends. */
export type Seal = readonly number[]

export class Meta implements SchemaStore {
  readonly #cluster: Cluster
  readonly #topic: string
  readonly #entries = new Map<string, string>()
  #cursor = 0
  /** What this process wrote, to be read before anything is told. */
  #own = 0
  #reading: Promise<void> | undefined

  constructor(cluster: Cluster, topic: string) {
    this.#cluster = cluster
    this.#topic = topic
  }

  /** Reads what was written since. */
  async refresh(): Promise<void> {
    // A reading that is under way may have begun before what is asked for was written.
    await this.#reading
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    await this.#reading
  }

  /** This process wrote up to this offset. */
  wrote(offset: number): void {
    this.#own = Math.max(this.#own, offset + 1)
  }

  note(name: string): string | undefined {
    return this.#get(noteKey(name)) as string | undefined
  }

  seal(topic: Topic): Seal | undefined {
    return (this.#get(sealKey(topic)) as Seal | null | undefined) ?? undefined
  }

  /** How often the group was set back. */
  round(group: string, topic: Topic): number {
    return (this.#get(roundKey(group, topic)) as number | undefined) ?? 0
  }

  /** Whether the group has, or had, a position there. */
  hasBegun(group: string, topic: Topic, partition: number): boolean {
    return this.#get(begunKey(group, topic, partition)) === true
  }

  /** The schema with this fingerprint, as JSON. */
  get(fingerprint: string): string | undefined {
    return this.#get(schemaKey(fingerprint)) as string | undefined
  }

  #get(key: string): unknown {
    const text = this.#entries.get(key)
    return text === undefined ? undefined : JSON.parse(text)
  }

  /** Up to what is written at present, so that nobody acts on what another process has changed already. */
  async #read(): Promise<void> {
    const deadline = Date.now() + (this.#cluster.patience ?? PATIENCE_MS)
    let end: number | undefined
    for (let pause = LOOK_MS; ; pause = Math.min(2 * pause, MOST_LOOK_MS)) {
      const before = this.#cursor
      const fetched = await retrying(this.#cluster, () =>
        fetchPartitions(this.#cluster, this.#topic, new Map([[0, this.#cursor]]), LIMITS),
      )
      const { records, next, written } = fetched.get(0)!
      for (const { key, value } of records) this.#entries.set(String(key), String(value))
      this.#cursor = next
      end ??= Math.max(written, this.#own)
      if (next >= end) return
      if (next > before) continue
      // An open transaction is in the way: of one who is at it, or who died and is timed out soon.
      if (Date.now() > deadline) throw undecided(this.#topic)
      await delay(pause)
    }
  }
}

export function noteKey(name: string): string {
  return `note:${name}`
}

export function sealKey(topic: Topic): string {
  return `seal:${topic}`
}

export function roundKey(group: string, topic: Topic): string {
  return `round:${topic}:${group}`
}

export function begunKey(group: string, topic: Topic, partition: number): string {
  return `begun:${topic}/${partition}:${group}`
}

export function schemaKey(fingerprint: string): string {
  return `schema:${fingerprint}`
}

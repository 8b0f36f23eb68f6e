/** The subscriptions of this process: who follows whom in a seat, and which groups it has left. */
import type { Subscriber } from 'rxjs'
import type { Topic } from '../../schemas/types.ts'
import type { Delivery, ReadOptions } from '../port.ts'
import { Reader, type ReaderParts } from './reader.ts'
import type { Turns } from './turns.ts'

export class Readers {
  readonly #parts: ReaderParts
  readonly #turns: Turns
  readonly #open = new Set<Reader>()
  /** Topic/group of which this process was a member and is none any more. */
  readonly #left = new Set<string>()
  #closed: unknown

  /** `turns`: of the groups' commits. */
  constructor(parts: ReaderParts, turns: Turns) {
    this.#parts = parts
    this.#turns = turns
  }

  of(group: string): Reader[] {
    return [...this.#open].filter(reader => reader.group === group)
  }

  /** Whether this process was a member there and is none any more. */
  hasLeft(topic: Topic, group: string): boolean {
    return this.#left.has(`${topic}/${group}`)
  }

  /** Undefined where it was unsubscribed meanwhile. */
  async start<T extends Topic>(
    topic: T,
    options: ReadOptions,
    subscriber: Subscriber<Delivery<T>>,
  ): Promise<Reader | undefined> {
    const { group } = options
    if (this.#closed !== undefined) throw this.#closed
    // A commit under way may move the positions that reading is to start from.
    await this.#turns.settled(group)
    const others = this.of(group)
    const before = others.find(each => each.topic === topic && each.leaving)
    await endLingering(others.filter(each => each !== before))
    if (subscriber.closed) return undefined
    if (this.#closed !== undefined) throw this.#closed
    const estate = await before?.succeed()
    const reader = new Reader(this.#parts, topic, options, subscriber, estate) as unknown as Reader
    this.#open.add(reader)
    this.#left.delete(`${topic}/${group}`)
    reader.finished.then(() => {
      this.#open.delete(reader)
      if (!this.of(group).some(each => each.topic === topic)) this.#left.add(`${topic}/${group}`)
    })
    if (this.#closed !== undefined) reader.leave()
    return reader
  }

  endLingering(group: string): Promise<void> {
    return endLingering(this.of(group))
  }

  /** From now on none starts; those there are hand out no more and fail with this. */
  fail(error: unknown): void {
    this.#closed = error
    for (const reader of this.#open) reader.fail(error)
  }

  async leave(): Promise<void> {
    for (const reader of this.#open) reader.leave()
    await Promise.all([...this.#open].map(reader => reader.finished))
  }
}

/** Members of this process that came to their end and only wait for their records to be committed. */
async function endLingering(readers: readonly Reader[]): Promise<void> {
  const lingering = readers.filter(reader => reader.ended)
  for (const reader of lingering) reader.leave()
  await Promise.all(lingering.map(reader => reader.finished))
}

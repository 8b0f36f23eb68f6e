/** One partition as a reader goes through it. */
import type { RawMessage } from './client.ts'
import { type Seen, see } from './origin.ts'

export class Lane {
  /** Fetched and not handed out. */
  readonly queue: RawMessage[] = []
  queued = 0
  /** Where to fetch. */
  position: number
  /** Past the last record that was handed out or dropped. */
  cursor: number
  /** Everything below it is done, here or by whoever had the partition before. */
  #done: number
  /** What was seen up to the cursor, and, by offset, what each record in flight added to it. */
  #seen: Seen
  readonly #marks: { readonly offset: number; readonly seen: Seen }[] = []
  #settled: Seen

  constructor(position: number, seen: Seen) {
    this.position = position
    this.cursor = position
    this.#done = position
    this.#seen = seen
    this.#settled = seen
  }

  get done(): number {
    return this.#done
  }

  fetched(records: readonly RawMessage[], next: number): void {
    for (const record of records) {
      this.queue.push(record)
      this.queued += sizeOf(record)
    }
    this.position = next
  }

  /** Takes the next record out, and tells whether it is a repetition of one that was there before. */
  take(): { readonly message: RawMessage; readonly repeated: boolean } {
    const message = this.queue.shift()!
    this.queued -= sizeOf(message)
    this.cursor = Number(message.offset) + 1
    const seen = see(this.#seen, message)
    if (seen === undefined) return { message, repeated: true }
    if (seen !== this.#seen) {
      this.#seen = seen
      this.#marks.push({ offset: Number(message.offset), seen })
    }
    return { message, repeated: false }
  }

  /** The position to commit for one that a stage gives: past what is no record for anybody. */
  reach(position: number): number {
    return position >= this.cursor && this.queue.length === 0 ? Math.max(position, this.position) : position
  }

  /** What was seen below a position. */
  seenBelow(position: number): Seen {
    let seen = this.#settled
    for (const mark of this.#marks) {
      if (mark.offset >= position) break
      seen = mark.seen
    }
    return seen
  }

  settle(position: number): void {
    this.#done = Math.max(this.#done, position)
    this.#settled = this.seenBelow(position)
    const first = this.#marks.findIndex(mark => mark.offset >= position)
    this.#marks.splice(0, first < 0 ? this.#marks.length : first)
  }
}

export function sizeOf({ value }: RawMessage): number {
  return value?.length ?? 0
}

/** One partition as a reader goes through it. */
import type { RawMessage } from './client.ts'
import { isAfter, type Mark, originOf, type Seen } from './origin.ts'

export class Lane {
  /** Fetched and not handed out, from `#head` on. */
  #queue: RawMessage[] = []
  #head = 0
  #queuedBytes = 0
  /** Where to fetch. */
  position: number
  /** Past the last record that was handed out or dropped. */
  cursor: number
  /** Everything below it is done, here or by whoever had the partition before. */
  #done: number
  /** What was seen up to the cursor, what was seen of what is done, and what each record in between added. */
  readonly #seen: Map<string, Mark>
  readonly #settled: Map<string, Mark>
  readonly #marks: { readonly offset: number; readonly source: string; readonly mark: Mark }[] = []

  /** The position that is stored. */
  #committed: number
  /** Past the last record that was handed out. */
  #handed: number

  /** `seen`: below the position. `committed`: the stored position, where that is another one. */
  constructor(position: number, seen: Seen, committed = position) {
    this.position = position
    this.#committed = committed
    this.#handed = position
    this.cursor = position
    this.#done = position
    this.#seen = new Map(Object.entries(seen))
    this.#settled = new Map(this.#seen)
  }

  get done(): number {
    return this.#done
  }

  get committed(): number {
    return this.#committed
  }

  /** Whether there is nothing here but repetitions past what is committed, so that no commit will follow. */
  get isIdle(): boolean {
    return !this.isOwing && this.queued === 0 && this.cursor > this.#done
  }

  /** Whether something was handed out that is not committed yet. */
  get isOwing(): boolean {
    return this.#handed > this.#done
  }

  /** How many records are fetched and not handed out. */
  get queued(): number {
    return this.#queue.length - this.#head
  }

  get queuedBytes(): number {
    return this.#queuedBytes
  }

  /** The next record; there is one while `queued` is not 0. */
  get next(): RawMessage {
    return this.#queue[this.#head]!
  }

  fetched(records: readonly RawMessage[], next: number): void {
    this.#queue = this.#queue.slice(this.#head)
    this.#head = 0
    for (const record of records) {
      this.#queue.push(record)
      this.#queuedBytes += sizeOf(record)
    }
    this.position = next
  }

  /** Takes the next record out; false when it is a repetition of one that was there before. */
  take(): boolean {
    const message = this.next
    // Nothing of it may be held by the queue.
    this.#queue[this.#head++] = undefined as never
    this.#queuedBytes -= sizeOf(message)
    const offset = Number(message.offset)
    this.cursor = offset + 1
    const origin = originOf(message)
    const last = origin && this.#seen.get(origin.source)
    if (last && !isAfter(origin.mark, last)) return false
    this.#handed = this.cursor
    if (!origin) return true
    const { source, mark } = origin
    this.#seen.set(source, mark)
    this.#marks.push({ offset, source, mark })
    return true
  }

  /** The position to commit for one that a stage gives: past what is no record for anybody. */
  reach(position: number): number {
    return position >= this.cursor && this.queued === 0 ? Math.max(position, this.position) : position
  }

  /** What was seen below a position. */
  seenBelow(position: number): Seen {
    const seen = new Map(this.#settled)
    for (const { offset, source, mark } of this.#marks) {
      if (offset >= position) break
      setLast(seen, source, mark)
    }
    return Object.fromEntries(seen)
  }

  settle(position: number): void {
    this.#committed = position
    this.#done = Math.max(this.#done, position)
    const first = this.#marks.findIndex(({ offset }) => offset >= position)
    const settled = this.#marks.splice(0, first < 0 ? this.#marks.length : first)
    for (const { source, mark } of settled) setLast(this.#settled, source, mark)
  }
}

/** What was seen last comes last. */
function setLast(seen: Map<string, Mark>, source: string, mark: Mark): void {
  seen.delete(source)
  seen.set(source, mark)
}

export function sizeOf({ value }: RawMessage): number {
  return value?.length ?? 0
}

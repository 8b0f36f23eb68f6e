/**
 * What keeps a reader from running ahead of its stage. Every record that is handed out takes credits, in
 * records and in bytes, and gives them back when a commit covers its offset. When a record does not fit,
 * reading stops until half of the credits are back, so that a stage at its limit is fed in batches instead
 * of one record at a time. `atLeast` records are always let through, however large: a stage that gathers n
 * deliveries before it finishes any asks for n, or it could starve itself.
 */
import type { Credits, Place } from './port.ts'

export class CreditCounter {
  readonly limit: Credits
  #records = 0
  #bytes = 0
  #refilling = false

  constructor(limit: Credits) {
    this.limit = limit
  }

  get inFlight(): Credits {
    return { records: this.#records, bytes: this.#bytes }
  }

  /** False while reading waits for half of the credits. */
  get open(): boolean {
    return !this.#refilling || this.#isNeeded
  }

  get #isNeeded(): boolean {
    return this.#records < (this.limit.atLeast ?? 1)
  }

  /** Takes credits for one record, or refuses and waits for a refill; one that is `needed` is not refused. */
  take(bytes: number, needed = false): boolean {
    if (!needed && !this.open) return false
    const fits = this.#records + 1 <= this.limit.records && this.#bytes + bytes <= this.limit.bytes
    if (!fits && !needed && !this.#isNeeded) {
      this.#refilling = true
      return false
    }
    this.#records++
    this.#bytes += bytes
    return true
  }

  give(bytes: number): void {
    this.#records--
    this.#bytes -= bytes
    if (this.#records <= Math.floor(this.limit.records / 2) && this.#bytes <= this.limit.bytes / 2)
      this.#refilling = false
  }
}

/** The records of one reader that are in flight, so that a committed position gives their credits back. */
export class CreditLedger {
  readonly #counter: CreditCounter
  readonly #each: number
  /** By partition, in the order of offsets. */
  readonly #held = new Map<number, { offset: number; bytes: number }[]>()

  constructor(limit: Credits) {
    this.#counter = new CreditCounter(limit)
    this.#each = limit.atLeastEach ?? 0
  }

  get inFlight(): Credits {
    return this.#counter.inFlight
  }

  /** False while nothing can be taken; true also where a partition may have something let through. */
  get open(): boolean {
    return this.#counter.open || this.#each > 0
  }

  take(place: Pick<Place, 'partition' | 'offset'>, bytes: number): boolean {
    const held = this.#held.get(place.partition)
    const isNeeded = (held?.length ?? 0) < this.#each
    if (!this.#counter.take(bytes, isNeeded)) return false
    if (held) held.push({ offset: place.offset, bytes })
    else this.#held.set(place.partition, [{ offset: place.offset, bytes }])
    return true
  }

  /** One record, out of turn. */
  release({ partition, offset }: Pick<Place, 'partition' | 'offset'>): void {
    const held = this.#held.get(partition)
    const index = held?.findIndex(record => record.offset === offset) ?? -1
    for (const { bytes } of held?.splice(index, index < 0 ? 0 : 1) ?? []) this.#counter.give(bytes)
  }

  /** Everything below `position` in the partition is settled. */
  settle(partition: number, position: number): void {
    const held = this.#held.get(partition)
    if (!held) return
    let settled = 0
    while (settled < held.length && held[settled]!.offset < position)
      this.#counter.give(held[settled++]!.bytes)
    held.splice(0, settled)
  }
}

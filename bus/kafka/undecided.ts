/**
 * Transactions that stay open: whoever reads committed records only is held up before them. Each has a timeout, after
 * which its coordinator ends it, but brokers that were killed at the wrong moment may leave one that nobody will end.
 */
import { undecided } from './faults.ts'
import type { Fetched } from './fetch.ts'

/** Between two looks further apart brokers may have been away, and nothing could be ended. */
const GAP_MS = 5_000

interface Held {
  readonly stable: number
  readonly since: number
  readonly seen: number
}

export class Undecided {
  readonly #topic: string
  readonly #patience: number
  readonly #held = new Map<number, Held>()

  /** @param patience in milliseconds, longer than any transaction may take */
  constructor(topic: string, patience: number) {
    this.#topic = topic
    this.#patience = patience
  }

  /** Throws LOG_UNAVAILABLE where nothing was decided for longer than transactions may take. */
  look(
    partition: number,
    { stable, written }: Pick<Fetched, 'stable' | 'written'>,
    now = performance.now(),
  ): void {
    const held = this.#held.get(partition)
    if (stable >= written) this.#held.delete(partition)
    else if (!held || held.stable !== stable || now - held.seen > GAP_MS) {
      this.#held.set(partition, { stable, since: now, seen: now })
    } else if (now - held.since > this.#patience) throw undecided(`${this.#topic}/${partition}`, stable)
    else this.#held.set(partition, { ...held, seen: now })
  }
}

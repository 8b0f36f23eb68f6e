/**
 * Wakes readers that wait for records: at once when this process wrote something, and by looking every
 * POLL_MS for what other processes wrote. The timer runs only while a reader waits.
 */
const POLL_MS = 100

export class WakeUp {
  readonly #sleepers = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined

  /** Calls `wake` once, when there may be something new. Gives a function that cancels. */
  sleep(wake: () => void): () => void {
    this.#sleepers.add(wake)
    this.#timer ??= setInterval(() => this.all(), POLL_MS)
    return () => {
      this.#sleepers.delete(wake)
      this.#stopWhenEmpty()
    }
  }

  all(): void {
    const sleepers = [...this.#sleepers]
    this.#sleepers.clear()
    for (const wake of sleepers) wake()
    this.#stopWhenEmpty()
  }

  #stopWhenEmpty(): void {
    if (this.#sleepers.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/**
 * Finds out that a process has gone silent. It counts seconds in which this process could have heard something: one
 * that was itself stopped, or too busy to listen, has not been waiting.
 */
const TICK_MS = 1000

export class Watchdog {
  readonly #patience: () => number
  readonly #bark: (seconds: number) => void
  #silent = 0
  #timer: NodeJS.Timeout | undefined

  /** `bark` is called once with the seconds of silence when they are `patience()`. */
  constructor(patience: () => number, bark: (seconds: number) => void) {
    this.#patience = patience
    this.#bark = bark
  }

  /** From now on something is to be heard. Again while that is so: changes nothing. */
  watch(): void {
    if (this.#timer !== undefined) return
    this.#silent = 0
    this.#wait()
  }

  /** A sign of life. */
  heard(): void {
    this.#silent = 0
  }

  rest(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #wait(): void {
    this.#timer = setTimeout(() => this.#tick(), TICK_MS)
    // Whether the process goes on is for those to say who wait for answers.
    this.#timer.unref()
  }

  #tick(): void {
    this.#timer = undefined
    this.#silent += 1
    if (this.#silent < this.#patience()) this.#wait()
    else this.#bark(this.#silent)
  }
}

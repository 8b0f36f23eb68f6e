/** How probable it is that a drafted token is right if those before it are, by how it went so far. */

/** How many tokens that were looked at count as much as the first guess. */
const PRIOR = 8
/** After as many, older ones begin to count less. */
const MEMORY = 128

export class HitRate {
  readonly #guess: number
  #looked = 0
  #right = 0

  /** @param guess before any was seen. */
  constructor(guess: number) {
    this.#guess = guess
  }

  get value(): number {
    return (this.#guess * PRIOR + this.#right) / (PRIOR + this.#looked)
  }

  learn(looked: number, right: number): void {
    this.#looked += looked
    this.#right += right
    if (this.#looked < MEMORY) return
    this.#looked /= 2
    this.#right /= 2
  }
}

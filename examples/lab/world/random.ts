/**
 * Seeded randomness for the world: the sfc32 generator of Chris Doty-Humphrey's PractRand, seeded by hashing a
 * label, so that every person and every text has a stream of its own and none depends on what came before it.
 */
export class Random {
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(label: string) {
    // FNV-1a over the label's code units; three starting values make the three state words.
    const hash = (basis: number) => {
      let h = basis
      for (let i = 0; i < label.length; i++) h = Math.imul(h ^ label.charCodeAt(i), 16777619)
      return h | 0
    }
    this.#a = hash(0x811c9dc5)
    this.#b = hash(0x01000193)
    this.#c = hash(0x9e3779b9)
    for (let i = 0; i < 16; i++) this.bits()
  }

  /** 32 random bits, as a number from 0. */
  bits(): number {
    const t = (this.#a + this.#b + this.#counter++) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + t
    this.#c |= 0
    return t >>> 0
  }

  /** From 0 up to but not including 1. */
  unit(): number {
    return this.bits() / 2 ** 32
  }

  /** A whole number from 0 up to but not including `limit`. */
  below(limit: number): number {
    return Math.floor(this.unit() * limit)
  }

  pick<T>(of: readonly T[]): T {
    if (of.length === 0) throw new RangeError('nothing to pick from')
    return of[this.below(of.length)]!
  }

  /** `count` different ones, in random order. */
  sample<T>(of: readonly T[], count: number): T[] {
    return this.shuffled(of).slice(0, count)
  }

  /** Fisher and Yates. */
  shuffled<T>(of: readonly T[]): T[] {
    const out = [...of]
    for (let i = out.length - 1; i > 0; i--) {
      const j = this.below(i + 1)
      const held = out[i]!
      out[i] = out[j]!
      out[j] = held
    }
    return out
  }
}

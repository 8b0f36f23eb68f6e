/**
 * What a step reads beside the newest token of each sequence: as many tokens as promise to pay, by how often drafts
 * like them were right so far. That decides over nothing but the time.
 */
import { draftLength } from './draft-length.ts'
import { LONGEST_MATCH, type Lookup, lookUp } from './prompt-lookup.ts'

/** Guesses at most `most` tokens that may follow a sequence, its prompt and response so far. */
export type Draft = (sequence: readonly number[], most: number) => Lookup

/** How probable a token of a draft is by the number of tokens that matched, before any was seen: of English answers. */
const CHANCES = [0, 0, 0.3, 0.4, 0.6, 0.8, 0.9, 0.9, 0.95]
/** How many tokens that are seen count as much as that. */
const PRIOR = 8
/** After as many, older ones begin to count less. */
const MEMORY = 128

export class Drafts {
  readonly #draft: Draft
  readonly #most: number
  readonly #right = new Float64Array(LONGEST_MATCH + 1)
  readonly #tried = new Float64Array(LONGEST_MATCH + 1)
  #matched: readonly number[] = []

  /** @param most tokens of a draft */
  constructor(draft: Draft = lookUp, most: number) {
    this.#draft = draft
    this.#most = most
  }

  /** Equally many tokens for each sequence. What has no guess gets token 0. */
  propose(sequences: readonly (readonly number[])[]): readonly (readonly number[])[] {
    const found = sequences.map(sequence => this.#draft(sequence, this.#most))
    const promises = found.map(({ tokens, matched }) => ({
      length: tokens.length,
      chance: this.#chance(matched),
    }))
    const length = draftLength(promises, this.#most)
    this.#matched = found.map(({ matched }) => matched)
    return found.map(({ tokens }) => Array.from({ length }, (_, i) => tokens[i] ?? 0))
  }

  /** Told of the last proposals how many tokens were looked at, and how many of them were right. */
  learn(looked: readonly number[], right: readonly number[]): void {
    this.#matched.forEach((matched, i) => {
      this.#tried[matched]! += looked[i]!
      this.#right[matched]! += right[i]!
      if (this.#tried[matched]! < MEMORY) return
      this.#tried[matched]! /= 2
      this.#right[matched]! /= 2
    })
  }

  #chance(matched: number): number {
    return (CHANCES[matched]! * PRIOR + this.#right[matched]!) / (PRIOR + this.#tried[matched]!)
  }
}

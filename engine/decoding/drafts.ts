/**
 * What a step reads beside the newest token of each sequence: as many tokens as promise to pay, guessed from the text
 * itself. Guesses decide over nothing but the time.
 */
import { draftLength } from './draft-length.ts'
import { HitRate } from './hit-rate.ts'
import type { Lookup } from './prompt-lookup.ts'

/** Guesses at most `most` tokens that may follow a sequence, its prompt and response so far. */
export type TextDraft = (sequence: readonly number[], most: number) => Lookup

/** A sequence that is being decoded. */
export interface Decoded {
  /** The prompt, then the response so far. */
  readonly sequence: readonly number[]
  /** Most tokens of a draft that can be of use. */
  readonly room: number
}

/** How probable a guess is by the number of tokens that matched: of greedy English answers. */
const CHANCES = [0, 0, 0.3, 0.4, 0.6, 0.8, 0.9, 0.9, 0.95]

export class Drafts {
  readonly #text: TextDraft
  readonly #rates = CHANCES.map(chance => new HitRate(chance))
  /** Whom the last guesses are to be put down to, by sequence. */
  #sources: readonly HitRate[] = []

  constructor(text: TextDraft) {
    this.#text = text
  }

  /** Equally many tokens for each sequence. What has no guess gets token 0. */
  propose(rows: readonly Decoded[]): readonly (readonly number[])[] {
    const found = rows.map(({ sequence, room }) => this.#text(sequence, room))
    const rateOf = ({ matched }: Lookup) => this.#rates[matched]!
    this.#sources = found.map(rateOf)
    const length = draftLength(
      found.map(lookup => ({ length: lookup.tokens.length, chance: rateOf(lookup).value })),
    )
    return found.map(({ tokens }) => Array.from({ length }, (_, i) => tokens[i] ?? 0))
  }

  /** Told of the last proposals how many tokens were looked at, and how many of them were right. */
  learn(looked: readonly number[], right: readonly number[]): void {
    this.#sources.forEach((source, i) => {
      source.learn(looked[i]!, right[i]!)
    })
  }
}

/**
 * How many tokens to draft in a step. A step takes equally many tokens of each sequence, and its time grows with the
 * parts of 16 that they make: so what fits into the parts is free, and more has to promise more than it costs.
 */

import { partsOf } from './forward-passes.ts'

/** What a step costs by its parts, as measured. */
const COSTS: ReadonlyMap<number, number> = new Map([
  [1, 1],
  [2, 1.5],
  [4, 2.3],
])

/** What is known of a sequence's draft. */
export interface Promise {
  /** Tokens of the draft. */
  readonly length: number
  /** How probable it is that a token is right if those before it are. */
  readonly chance: number
}

/**
 * Most tokens a second, by what the drafts promise.
 * @returns tokens of a draft, at most `most`.
 */
export function draftLength(drafts: readonly Promise[], most: number): number {
  let best = 0
  let bestRate = 0
  const longest = Math.min(most, Math.max(...drafts.map(({ length }) => length)))
  for (let length = 0; length <= longest; length++) {
    const cost = COSTS.get(partsOf(drafts.length * (length + 1)))
    if (cost === undefined) break
    let tokens = 0
    for (const draft of drafts) {
      const drafted = Math.min(length, draft.length)
      tokens += (1 - draft.chance ** (drafted + 1)) / (1 - draft.chance)
    }
    const rate = tokens / cost
    if (rate <= bestRate) continue
    best = length
    bestRate = rate
  }
  return best
}

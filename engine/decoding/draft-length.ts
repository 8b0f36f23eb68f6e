/**
 * How many tokens to draft in a step. A step takes equally many tokens of each sequence, and its time grows with the
 * parts that they make (part-size.ts), and little within a part: so most of what fits is nearly free, and more has to promise
 * more than it costs.
 */

/** What a step costs by its parts, and with each token, as measured: about 1 for a step of one token. */
const PART_COSTS: ReadonlyMap<number, number> = new Map([
  [1, 1],
  [2, 1.4],
  [4, 2],
])
const TOKEN_COST = 0.012

/** What is known of the draft of a sequence. */
export interface DraftPromise {
  /** Its tokens. */
  readonly length: number
  /** How probable it is that a token is right if those before it are. Below 1. */
  readonly chance: number
}

export interface DraftPlan {
  readonly length: number
  /** Tokens that it promises by what it costs. */
  readonly rate: number
}

/**
 * The length with the most tokens by cost.
 * @param drafting what it costs to draft one token of each sequence, on the scale of a step of one token.
 */
export function planDrafts(drafts: readonly DraftPromise[], drafting = 0): DraftPlan {
  let best: DraftPlan = { length: 0, rate: 0 }
  const longest = Math.max(...drafts.map(({ length }) => length))
  for (let length = 0; length <= longest; length++) {
    const tokens = drafts.length * (length + 1)
    if (tokens > 64) break
    const cost = 1 + TOKEN_COST * tokens + drafting * length
    let promised = 0
    for (const draft of drafts) {
      promised += (1 - draft.chance ** (Math.min(length, draft.length) + 1)) / (1 - draft.chance)
    }
    const rate = promised / cost
    if (rate > best.rate) best = { length, rate }
  }
  return best
}

/**
 * How many tokens to draft in a step. A step takes equally many tokens of each sequence. Reading the weights takes most
 * of the time where there are few, so the next tokens cost little; with many, each costs its products.
 */

/** What a step costs, as measured: about 1 for one token. */
const STEP_COST = 0.9
/** With each sequence, and with each token beyond the first of each. */
const SEQUENCE_COST = 0.1
const TOKEN_COST = 0.06
/** Most tokens of a step: logits are made of all. */
export const MOST_STEP_TOKENS = 64

/** What is known of the draft of a sequence. */
export interface DraftPromise {
  /** Its tokens. */
  readonly length: number
  /** How probable it is that a token is right if those before it are. Below 1. */
  readonly chance: number
}

/** The length that promises the most tokens by cost. */
export function draftLength(drafts: readonly DraftPromise[]): number {
  const sequences = drafts.length
  const longest = Math.max(...drafts.map(({ length }) => length))
  const most = Math.min(longest, Math.floor(MOST_STEP_TOKENS / sequences) - 1)
  let [best, greatest] = [0, 0]
  for (let length = 0; length <= most; length++) {
    let promised = 0
    for (const draft of drafts) {
      promised += (1 - draft.chance ** (Math.min(length, draft.length) + 1)) / (1 - draft.chance)
    }
    const rate = promised / (STEP_COST + sequences * (SEQUENCE_COST + TOKEN_COST * length))
    if (rate > greatest) [best, greatest] = [length, rate]
  }
  return best
}

/** Groups sequences of unequal length into passes of padded rows. */
import { LEAST_LENGTH } from './positions.ts'

export interface Batch {
  /** Which sequences, by their place in the list. */
  readonly members: readonly number[]
  /** T: the longest member's, or the least of a pass; shorter ones are padded on the right. */
  readonly length: number
}

/** A row shorter than this part of its batch's length starts another batch. */
const LEAST_FILL = 0.75

/**
 * Longest first, so that rows of like length share a batch. Each batch has at most `tokensPerPass` tokens,
 * padding included, or one sequence. Sequences of length 0 are in none.
 */
export function batchesOf(lengths: readonly number[], tokensPerPass: number): Batch[] {
  const order = [...lengths.keys()].filter(index => lengths[index]! > 0)
  order.sort((a, b) => lengths[b]! - lengths[a]! || a - b)
  const batches: { members: number[]; length: number }[] = []
  let open: { members: number[]; length: number } | undefined
  for (const index of order) {
    const fits = open && (open.members.length + 1) * open.length <= tokensPerPass
    if (!open || !fits || lengths[index]! < LEAST_FILL * open.length) {
      open = { members: [], length: Math.max(LEAST_LENGTH, lengths[index]!) }
      batches.push(open)
    }
    open.members.push(index)
  }
  return batches
}

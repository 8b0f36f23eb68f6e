/** Groups sequences of unequal length into passes of padded rows. */
import type { ModelConfig } from '../architectures/config.ts'
import { layerParameters } from '../architectures/layer-parameters.ts'
import { leastRows } from '../runtime/thread-invariance.ts'
import { LEAST_LENGTH } from './positions.ts'

export interface Batch {
  /** Which sequences, by their place in the list. */
  readonly members: readonly number[]
  /** B: the members and, behind them, rows of padding. */
  readonly rows: number
  /** T: the longest member's, or the least of a pass; shorter ones are padded on the right. */
  readonly length: number
}

/** Least sizes of a pass. */
export interface PassLimits {
  readonly rows: number
  /** B · T */
  readonly tokens: number
}

/**
 * What keeps the results of a pass from depending on the number of threads (runtime/thread-invariance.ts).
 * @param rank of an adapter
 */
export function passLimits(config: ModelConfig, rank = 1): PassLimits {
  const matrices = [...layerParameters(config).values()].filter(({ length }) => length === 2)
  // With one key/value head a row alone is one product, which threads share; two rows are one for each.
  return { rows: config.keyValueHeads === 1 ? 2 : 1, tokens: leastRows([...matrices.flat(), rank]) }
}

/**
 * Where the rows of a batch begin whose last hidden states are asked for: at the first that some member wants, or before,
 * so that enough rows are left for products with them not to depend on the number of threads either.
 * @param wanted one for each member
 */
export function tailStart(
  wanted: readonly { readonly from: number }[],
  { rows, length }: Batch,
  least: PassLimits,
): number {
  const first = Math.min(...wanted.map(({ from }) => from))
  return Math.max(0, Math.min(first, length - LEAST_LENGTH, length - Math.ceil(least.tokens / rows)))
}

/** A row shorter than this part of its batch's length starts another batch. */
const LEAST_FILL = 0.75

/**
 * Longest first, so that rows of like length share a batch. Each batch has at most `tokensPerPass` tokens,
 * padding included, or one sequence, or the least that a pass takes. Sequences of length 0 are in none.
 */
export function batchesOf(lengths: readonly number[], tokensPerPass: number, least: PassLimits): Batch[] {
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
  return batches.map(({ members, length }) => ({
    members,
    rows: Math.max(members.length, least.rows, Math.ceil(least.tokens / length)),
    length,
  }))
}

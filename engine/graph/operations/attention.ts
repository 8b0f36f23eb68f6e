/** Scaled dot-product attention with grouped heads. */
import { expectShape, type Value } from '../value.ts'
import { add } from './add.ts'
import { composite } from './composite.ts'
import { matmul } from './matmul.ts'
import { multiply } from './multiply.ts'
import { reshape } from './reshape.ts'
import { scale } from './scale.ts'
import { concat, type Range, slice } from './slice.ts'
import { softmax } from './softmax.ts'
import { subtract } from './subtract.ts'
import { sumTo } from './sum-to.ts'
import { tanh, tanhSlope } from './tanh.ts'
import { transpose } from './transpose.ts'

export interface AttentionOptions {
  /** H query heads; each group of H / K of them shares one of the K key and value heads. */
  readonly heads: number
  readonly keyValueHeads: number
  readonly headDim: number
  /** Factor of the scores. */
  readonly scale: number
  /** Scores s become cap · tanh(s / cap). */
  readonly softCap?: number
}

/**
 * Queries that look at the same keys. Blocks of rows that follow each other and look at no more than they may
 * spare a causal attention the half of the scores that its mask would discard.
 */
export interface AttentionBlock {
  readonly queries: Range
  readonly keys: Range
  /** [queries, keys], added to the scores: 0, or so low that the exponential vanishes. */
  readonly mask: Value
}

/**
 * softmax(scale · q · kᵀ + mask) · v for each head, the scores soft-capped before the mask where a cap is given.
 *
 * @param q [B, T, H · headDim], heads one after the other
 * @param k [B, T, K · headDim]
 * @param v [B, T, K · headDim]
 * @param blocks cover the queries in order
 * @returns [B, T, H · headDim]
 */
export function attention(
  q: Value,
  k: Value,
  v: Value,
  blocks: readonly AttentionBlock[],
  options: AttentionOptions,
): Value {
  const { heads, keyValueHeads, headDim } = options
  expectShape(q.shape[2] === heads * headDim && k.shape[2] === keyValueHeads * headDim, 'attention', q, k)
  expectShape(v.shape[2] === keyValueHeads * headDim, 'attention', v)
  const [batch, length] = [q.shape[0]!, q.shape[1]!]
  const split = (x: Value, count: number) =>
    transpose(reshape(x, [batch, length, count, headDim]), [0, 2, 1, 3])
  const [queries, keys, values] = [split(q, heads), split(k, keyValueHeads), split(v, keyValueHeads)]
  const contexts = blocks.map(block => {
    const part = (x: Value, range: Range) => (range.length === length ? x : slice(x, 2, range))
    const rows = block.queries.length
    // The queries of a group stand below each other, [B, K, G·T, headDim], so that keys are never repeated.
    const stacked = heads === keyValueHeads ? rows : `${heads / keyValueHeads}·${rows}`
    const context = grouped(
      reshape(part(queries, block.queries), [batch, keyValueHeads, stacked, headDim]),
      part(keys, block.keys),
      part(values, block.keys),
      block.mask,
      options,
    )
    return reshape(context, [batch, heads, rows, headDim])
  })
  const ranges = blocks.map(block => block.queries)
  const merged = transpose(concat(contexts, 2, ranges, length), [0, 2, 1, 3])
  return reshape(merged, [batch, length, heads * headDim])
}

/** With q [B, K, G·T, headDim], k and v [B, K, T, headDim]. */
function grouped(
  q: Value,
  k: Value,
  v: Value,
  mask: Value,
  { heads, scale: factor, softCap = 0 }: AttentionOptions,
): Value {
  const [batch, keyValueHeads, stacked] = q.shape
  const products = (scale: number) => matmul(q, k, { transposeB: true, scale })
  const capped = softCap > 0 ? tanh(products(factor / softCap)) : undefined
  const scores = capped ? scale(capped, softCap) : products(factor)
  const masked = add(reshape(scores, [batch!, heads, ...mask.shape]), mask)
  const weights = reshape(softmax(masked), [batch!, keyValueHeads!, stacked!, mask.shape[1]!])
  const context = matmul(weights, v)
  // The softmax's Σ_j dP_j P_j equals Σ dC · C (Dao et al., arXiv:2205.14135, eq. 4): a sum over headDim, not T.
  return composite('attention', [q, k, v, mask], context, adjoint => {
    const mean = sumTo(multiply(adjoint, context), [batch!, keyValueHeads!, stacked!, 1])
    const slope = multiply(weights, subtract(matmul(adjoint, v, { transposeB: true }), mean))
    const scoreAdjoint = capped ? multiply(slope, tanhSlope(capped)) : slope
    return [
      matmul(scoreAdjoint, k, { scale: factor }),
      matmul(scoreAdjoint, q, { transposeA: true, scale: factor }),
      matmul(weights, adjoint, { transposeA: true }),
      null,
    ]
  })
}

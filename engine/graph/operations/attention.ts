/** Scaled dot-product attention with grouped heads. */
import { type Dim, expectShape, type Value } from '../value.ts'
import { add } from './add.ts'
import { composite } from './composite.ts'
import { matmul } from './matmul.ts'
import { multiply } from './multiply.ts'
import { reshape } from './reshape.ts'
import { scale } from './scale.ts'
import { addRanges, concat, type Range, slice } from './slice.ts'
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
 * Queries that are multiplied with the same keys. A causal mask discards half of the scores: where the queries are cut
 * into blocks, each with no more keys than the mask lets it see, most of that half is never computed.
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
 * @param q [B, Q, H · headDim], heads one after the other
 * @param k [B, T, K · headDim]
 * @param v [B, T, K · headDim]
 * @param blocks cover the queries in order
 * @returns [B, Q, H · headDim]
 */
export function attention(
  q: Value,
  k: Value,
  v: Value,
  blocks: readonly AttentionBlock[],
  options: AttentionOptions,
): Value {
  const { heads, keyValueHeads, headDim, scale: factor } = options
  expectShape(q.shape[2] === heads * headDim && k.shape[2] === keyValueHeads * headDim, 'attention', q, k)
  expectShape(v.shape[2] === keyValueHeads * headDim, 'attention', v)
  const [batch, length] = [q.shape[0]!, q.shape[1]!]
  const split = (x: Value, count: number) =>
    transpose(reshape(x, [batch, x.shape[1]!, count, headDim]), [0, 2, 1, 3])
  const part = (x: Value, range: Range) => (range.length === x.shape[2] ? x : slice(x, 2, range))
  // The queries of a group stand below each other, [B, K, G·rows, ..], so that keys are never repeated.
  const stack = (x: Value) => {
    const [rows, width] = x.shape.slice(2) as [Dim, Dim]
    const stacked = heads === keyValueHeads ? rows : `${heads / keyValueHeads}·${rows}`
    return reshape(x, [batch, keyValueHeads, stacked, width])
  }
  const unstack = (x: Value, { queries }: AttentionBlock) =>
    reshape(x, [batch, heads, queries.length, x.shape[3]!])

  const [queries, keys, values] = [split(q, heads), split(k, keyValueHeads), split(v, keyValueHeads)]
  const parts = blocks.map(block => {
    const query = stack(part(queries, block.queries))
    const key = part(keys, block.keys)
    return { block, query, key, value: part(values, block.keys), ...attend(query, key, block.mask, options) }
  })
  const queryRanges = blocks.map(block => block.queries)
  const contexts = parts.map(({ block, weights, value }) => unstack(matmul(weights, value), block))
  const merged = transpose(concat(contexts, 2, queryRanges, length), [0, 2, 1, 3])
  const attended = reshape(merged, [batch, length, heads * headDim])

  return composite('attention', [queries, keys, values], attended, adjoint => {
    // The softmax's Σ_j dP_j P_j equals Σ dC · C (Dao et al., arXiv:2205.14135, eq. 4): a sum over headDim, not T.
    const byHead = (x: Value) => reshape(x, [batch, length, heads, headDim])
    const means = sumTo(multiply(byHead(adjoint), byHead(attended)), [batch, length, heads, 1])
    const [adjoints, turnedMeans] = [split(adjoint, heads), transpose(means, [0, 2, 1, 3])]
    const slopes = parts.map(({ block, query, key, value, weights, capSlope }) => {
      const contextAdjoint = stack(part(adjoints, block.queries))
      const mean = stack(part(turnedMeans, block.queries))
      const masked = multiply(weights, subtract(matmul(contextAdjoint, value, { transposeB: true }), mean))
      const scores = capSlope ? multiply(masked, capSlope) : masked
      return {
        query: unstack(matmul(scores, key, { scale: factor }), block),
        key: matmul(scores, query, { transposeA: true, scale: factor }),
        value: matmul(weights, contextAdjoint, { transposeA: true }),
      }
    })
    const keyRanges = blocks.map(block => block.keys)
    const ofKeys = (flows: readonly Value[]) => addRanges(flows, 2, keyRanges, keys.shape[2]!)
    return [
      concat(
        slopes.map(({ query }) => query),
        2,
        queryRanges,
        length,
      ),
      ofKeys(slopes.map(({ key }) => key)),
      ofKeys(slopes.map(({ value }) => value)),
    ]
  })
}

/** The attention weights of q [B, K, G·rows, headDim] for keys [B, K, keys, headDim], and the slope of the cap. */
function attend(
  q: Value,
  k: Value,
  mask: Value,
  { heads, scale: factor, softCap = 0 }: AttentionOptions,
): { weights: Value; capSlope?: Value } {
  const [batch, keyValueHeads, stacked] = q.shape
  const products = (scale: number) => matmul(q, k, { transposeB: true, scale })
  const capped = softCap > 0 ? tanh(products(factor / softCap)) : undefined
  const scores = capped ? scale(capped, softCap) : products(factor)
  const masked = add(reshape(scores, [batch!, heads, ...mask.shape]), mask)
  const weights = reshape(softmax(masked), [batch!, keyValueHeads!, stacked!, mask.shape[1]!])
  return { weights, ...(capped && { capSlope: tanhSlope(capped) }) }
}

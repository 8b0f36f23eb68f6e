/** Inputs and outputs of the decoding graph. Shape suffixes are those of decode-graph.ts. */

/** Inputs beside the weights and the cache. */
export const INPUT = {
  /** [N] int32: the R tokens, then any that only fill up. */
  tokens: 'tokens',
  /** [B, S] int64: place of each token in its sequence. */
  positions: 'positions',
  /** [M] int32: of which of the N tokens logits are wanted. */
  last: 'last',
  /** [N − R, H·E] zeros: attention's result for the tokens that fill up. */
  filler: 'filler',
  /** [B, 1, 1, 1, L]: 0 where the row's cache holds a token, −∞ where not. */
  cacheMask: 'cache_mask',
  /** [S, S]: 0 where a token of the pass may look at another, −∞ where not. */
  passMask: 'pass_mask',
  /** [B, 1, 1, S, L] and [S, S]: the same for layers with a sliding window, where the model has any. */
  windowCacheMask: 'window_cache_mask',
  windowPassMask: 'window_pass_mask',
  /** [context, E/2] each */
  cosines: 'cosines',
  sines: 'sines',
} as const

/** [M, V] */
export const LOGITS = 'logits'

/** Names of a layer's cache: inputs [B, K, 1, L, E], and the pass's own keys and values [B, K, 1, S, E]. */
export function cacheNames(layer: number) {
  return {
    keys: `keys.${layer}`,
    values: `values.${layer}`,
    newKeys: `new_keys.${layer}`,
    newValues: `new_values.${layer}`,
  }
}

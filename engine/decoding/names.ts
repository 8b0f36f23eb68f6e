/** Inputs and outputs of the decoding graph. Shape suffixes are those of decode-graph.ts. */

/** Inputs beside the weights and the cache. */
export const INPUT = {
  /** [N] int32 */
  tokens: 'tokens',
  /** [B, S] int64: place of each token in its sequence. */
  positions: 'positions',
  /** [M] int32: of which of the N tokens logits are wanted. */
  last: 'last',
  /** [B, K, S, 3] int64: row, head and place in the row's block of each new key. */
  places: 'places',
  /** [1] int64: how many rows of the cache and the masks beyond B only fill up; where `fewestRows` is above 1. */
  spare: 'spare',
  /** [2] int64: T and L. */
  spans: 'spans',
  /**
   * [B + spare, 1, S, T + L]: 0 where a token of the pass may look at a place of the row's block, or at a token in a full block
   * of the row's cache; −∞ where not.
   */
  mask: 'mask',
  /** The same for layers with a sliding window, where the model has any. */
  windowMask: 'window_mask',
  /** [context, E/2] each */
  cosines: 'cosines',
  sines: 'sines',
} as const

/** [M, V] */
export const LOGITS = 'logits'

/** Names of a layer's cache: inputs [B + spare, K, L, E] and [B + spare, K, T, E], and the pass's own keys and values [B, K, S, E]. */
export function cacheNames(layer: number) {
  return {
    keys: `keys.${layer}`,
    values: `values.${layer}`,
    blockKeys: `block_keys.${layer}`,
    blockValues: `block_values.${layer}`,
    newKeys: `new_keys.${layer}`,
    newValues: `new_values.${layer}`,
  }
}

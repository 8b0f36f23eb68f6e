/** What each token of a pass may look at: the cached tokens of its row, and the pass's own up to itself. */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import type { Feeds } from '../runtime/session.ts'
import { INPUT } from './names.ts'

const MASKED = Number.NEGATIVE_INFINITY

/** A pass of `firsts.length` rows of `tokens` tokens; row b's tokens stand at `firsts[b]`, `firsts[b] + 1`, … */
export interface PassExtent {
  readonly firsts: ArrayLike<number>
  readonly tokens: number
  /** L: positions of the cache that the pass is given. Row b holds tokens at those before `firsts[b]`. */
  readonly cached: number
}

/** The masks that the decoding graph of the model takes. */
export function maskFeeds({ slidingWindow }: ModelConfig, extent: PassExtent): Feeds {
  const full = { [INPUT.cacheMask]: cacheMask(extent), [INPUT.passMask]: passMask(extent.tokens) }
  if (!slidingWindow) return full
  return {
    ...full,
    [INPUT.windowCacheMask]: windowCacheMask(extent, slidingWindow.tokens),
    [INPUT.windowPassMask]: passMask(extent.tokens, slidingWindow.tokens),
  }
}

/** [B, 1, 1, 1, L] */
function cacheMask({ firsts, cached }: PassExtent): Tensor {
  const mask = new Float32Array(firsts.length * cached)
  for (let row = 0; row < firsts.length; row++) {
    mask.fill(MASKED, row * cached + firsts[row]!, (row + 1) * cached)
  }
  return new Tensor('float32', mask, [firsts.length, 1, 1, 1, cached])
}

/** [B, 1, 1, S, L]: of what is cached, the last of the window. */
function windowCacheMask({ firsts, tokens, cached }: PassExtent, window: number): Tensor {
  const mask = new Float32Array(firsts.length * tokens * cached)
  let at = 0
  for (let row = 0; row < firsts.length; row++) {
    for (let token = 0; token < tokens; token++, at += cached) {
      const first = firsts[row]!
      mask.fill(MASKED, at, at + Math.min(cached, Math.max(0, first + token - window + 1)))
      mask.fill(MASKED, at + first, at + cached)
    }
  }
  return new Tensor('float32', mask, [firsts.length, 1, 1, tokens, cached])
}

/** [S, S]: 0 up to the diagonal, in a window of it where one is given, −∞ elsewhere. */
function passMask(tokens: number, window: number = tokens): Tensor {
  const mask = new Float32Array(tokens * tokens)
  for (let row = 0; row < tokens; row++) {
    mask.fill(MASKED, row * tokens, row * tokens + Math.max(0, row - window + 1))
    mask.fill(MASKED, row * tokens + row + 1, (row + 1) * tokens)
  }
  return new Tensor('float32', mask, [tokens, tokens])
}

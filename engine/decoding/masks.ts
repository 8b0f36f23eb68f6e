/**
 * What each token of a pass may look at: the tokens of its row in full blocks of the cache, then those in the block
 * that is being filled, up to itself. And where in that block its own keys and values go.
 */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import type { Feeds } from '../runtime/session.ts'
import { INPUT } from './names.ts'

const MASKED = Number.NEGATIVE_INFINITY

/** A pass of `firsts.length` rows of `tokens` tokens; row b's tokens stand at `firsts[b]`, `firsts[b] + 1`, … */
export interface PassExtent {
  readonly firsts: ArrayLike<number>
  /** Where the block begins that row b is filling: place t of it is for the token at `starts[b] + t`. */
  readonly starts: ArrayLike<number>
  /** S */
  readonly tokens: number
  /** L: positions of full blocks that the pass is given. Row b has tokens at those before `starts[b]`. */
  readonly cached: number
  /** T: places of a block that the pass is given. */
  readonly places: number
}

/** The masks that the decoding graph of the model takes, and the places of the pass's keys. */
export function maskFeeds({ slidingWindow, keyValueHeads }: ModelConfig, extent: PassExtent): Feeds {
  const full = {
    [INPUT.places]: places(extent, keyValueHeads),
    [INPUT.cacheMask]: cacheMask(extent),
    [INPUT.blockMask]: blockMask(extent),
  }
  if (!slidingWindow) return full
  return {
    ...full,
    [INPUT.windowCacheMask]: windowCacheMask(extent, slidingWindow.tokens),
    [INPUT.windowBlockMask]: blockMask(extent, slidingWindow.tokens),
  }
}

/** [B, K, S, 3] */
function places({ firsts, starts, tokens }: PassExtent, heads: number): Tensor {
  const ids = new BigInt64Array(firsts.length * heads * tokens * 3)
  let at = 0
  for (let row = 0; row < firsts.length; row++) {
    for (let head = 0; head < heads; head++) {
      for (let token = 0; token < tokens; token++) {
        ids[at++] = BigInt(row)
        ids[at++] = BigInt(head)
        ids[at++] = BigInt(firsts[row]! - starts[row]! + token)
      }
    }
  }
  return new Tensor('int64', ids, [firsts.length, heads, tokens, 3])
}

/** [B, 1, 1, 1, L] */
function cacheMask({ starts, cached }: PassExtent): Tensor {
  const mask = new Float32Array(starts.length * cached)
  for (let row = 0; row < starts.length; row++) {
    mask.fill(MASKED, row * cached + starts[row]!, (row + 1) * cached)
  }
  return new Tensor('float32', mask, [starts.length, 1, 1, 1, cached])
}

/** [B, 1, 1, S, L]: of what is cached, the last of the window. */
function windowCacheMask({ firsts, starts, tokens, cached }: PassExtent, window: number): Tensor {
  const mask = new Float32Array(firsts.length * tokens * cached)
  let at = 0
  for (let row = 0; row < firsts.length; row++) {
    for (let token = 0; token < tokens; token++, at += cached) {
      const before = firsts[row]! + token - window + 1
      mask.fill(MASKED, at, at + Math.min(cached, Math.max(0, before)))
      mask.fill(MASKED, at + starts[row]!, at + cached)
    }
  }
  return new Tensor('float32', mask, [firsts.length, 1, 1, tokens, cached])
}

/** [B, 1, 1, S, T]: 0 up to the token itself, in a window of it where one is given, −∞ elsewhere. */
function blockMask({ firsts, starts, tokens, places }: PassExtent, window?: number): Tensor {
  const mask = new Float32Array(firsts.length * tokens * places).fill(MASKED)
  let at = 0
  for (let row = 0; row < firsts.length; row++) {
    for (let token = 0; token < tokens; token++, at += places) {
      const own = firsts[row]! - starts[row]! + token
      const first = window === undefined ? 0 : Math.max(0, own - window + 1)
      mask.fill(0, at + first, at + own + 1)
    }
  }
  return new Tensor('float32', mask, [firsts.length, 1, 1, tokens, places])
}

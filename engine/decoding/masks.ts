/**
 * What each token of a pass may look at: the tokens in the block that its row is filling, up to itself, then those in full
 * blocks of the cache. And where in that block its own keys and values go.
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
  /** Rows beyond these that only fill up. */
  readonly spare: number
}

/** What the decoding graph of the model is told of the pass: masks, and the places of its keys. */
export function maskFeeds({ slidingWindow, keyValueHeads }: ModelConfig, extent: PassExtent): Feeds {
  const { cached, places: own } = extent
  return {
    [INPUT.places]: places(extent, keyValueHeads),
    [INPUT.spans]: new Tensor('int64', BigInt64Array.of(BigInt(own), BigInt(cached)), [2]),
    [INPUT.mask]: mask(extent, Number.POSITIVE_INFINITY),
    ...(slidingWindow && { [INPUT.windowMask]: mask(extent, slidingWindow.tokens) }),
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

/** [B + spare, 1, S, T + L]: a token looks at itself and those before it, `window` of them. */
function mask({ firsts, starts, tokens, cached, places, spare }: PassExtent, window: number): Tensor {
  const width = cached + places
  const rows = firsts.length + spare
  const mask = new Float32Array(rows * tokens * width).fill(MASKED)
  let at = 0
  for (let row = 0; row < firsts.length; row++) {
    const start = starts[row]!
    for (let token = 0; token < tokens; token++, at += width) {
      const own = firsts[row]! + token
      const first = Math.max(0, own - window + 1)
      mask.fill(0, at + Math.max(0, first - start), at + own - start + 1)
      mask.fill(0, at + places + Math.min(first, start), at + places + start)
    }
  }
  // A softmax over nothing would not be a number.
  for (; at < mask.length; at += width) mask[at] = 0
  return new Tensor('float32', mask, [rows, 1, tokens, width])
}

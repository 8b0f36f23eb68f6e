/**
 * Memory of one pass through the layers and the output head. What is kept between forward and backward pass follows
 * from the graphs themselves. What a session needs while it runs is a factor, fitted to the resident memory of sessions
 * of 9 shapes (docs/performance.md): their arenas share room between tensors, but not perfectly. Each session has an
 * arena of its own that never shrinks, so the needs of all of them add up.
 *
 * B rows of T tokens, N = B·T; D hidden size, F intermediate size, H heads, V vocabulary.
 */
import type { ModelConfig } from '../architectures/config.ts'
import { resolveShape } from '../learner/buffers.ts'
import { CHUNK_ELEMENTS } from '../learner/chunks.ts'
import { layerGraphs } from '../learner/layer-graphs.ts'
import { positionLengths, reachesOf } from '../learner/positions.ts'
import type { LoraOptions } from '../port.ts'
import { F32_BYTES } from './memory-use.ts'

export interface Pass {
  readonly rows: number
  readonly length: number
}

/** The pass of the most tokens, of sequences of one length. @param most of them */
export function largestPass(length: number, tokensPerPass: number, most = Number.POSITIVE_INFINITY): Pass {
  return { rows: Math.max(1, Math.min(most, Math.floor(tokensPerPass / length))), length }
}

export interface LayerMemory {
  /** What the backward pass needs of one layer; the greatest of the model's layers. */
  readonly kept: number
  /** A layer's input. */
  readonly input: number
  /** While a layer runs forward, and backward with and without what is kept. */
  readonly forward: number
  readonly backward: number
  readonly recomputing: number
}

/** Gives the memory of a pass. */
export function layerMemory(config: ModelConfig, lora?: LoraOptions): (pass: Pass) => LayerMemory {
  const { hiddenSize: D, intermediateSize: F, heads: H } = config
  const shapes = reachesOf(config).map(reach => [...layerGraphs(config, reach, lora).kept.values()])
  return ({ rows, length }) => {
    const lengths = { B: rows, ...positionLengths(config, length) }
    const size = (shape: readonly (number | string)[]) =>
      resolveShape(shape, lengths).reduce((product, dim) => product * dim, F32_BYTES)
    const kept = Math.max(...shapes.map(all => all.reduce((sum, shape) => sum + size(shape), 0)))
    const input = F32_BYTES * rows * length * D
    const gates = F32_BYTES * rows * length * F
    // The last and largest of the four blocks that attention is cut into.
    const scores = F32_BYTES * rows * H * Math.ceil(length / 4) * length
    // With what the last layer's own sessions need: it computes the rows that are wanted alone, but of all the keys.
    const backward = Math.max(8 * gates, 5 * scores) + 7 * input + F32_BYTES * D * F
    return {
      kept,
      input,
      forward: Math.max(3.6 * gates, 3.2 * scores) + 5 * input,
      backward,
      recomputing: kept + 0.8 * backward + 2 * input,
    }
  }
}

/**
 * Of the output head, while it computes the numbers of scored tokens, and a loss with its gradients.
 * @param tokens of the responses that are scored together, and of those in a training pass
 * @param several whether an update has more than one pass: where a pass is a single chunk, the first of them has a
 * session of its own
 */
export function headMemory(
  { vocabularySize: V }: ModelConfig,
  tokens: { readonly scored: number; readonly trained: number },
  several: boolean,
): number {
  const most = Math.max(1, Math.floor(CHUNK_ELEMENTS / V))
  const chunk = (count: number) => F32_BYTES * V * Math.min(count, most)
  const sessions = several && tokens.trained <= most ? 2 : 1
  return 8 * chunk(tokens.scored) + 5.3 * sessions * chunk(tokens.trained)
}

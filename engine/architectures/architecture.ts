/** What the engine needs of a model family: its layer as a differentiable graph. Everything else is shared. */
import { GraspError } from '../../errors/grasp-error.ts'
import type { AttentionBlock } from '../graph/operations/attention.ts'
import type { Value } from '../graph/value.ts'
import type { ModelConfig } from './config.ts'
import { llama } from './llama.ts'

/** Positions of a pass of B rows of T tokens, padded on the right. */
export interface Positions {
  /** [T, headDim / 2] */
  readonly cos: Value
  readonly sin: Value
  /** Which keys each query looks at. */
  readonly blocks: readonly AttentionBlock[]
}

export interface Architecture {
  /** Shapes of a layer's parameters by their names behind `model.layers.N.`, in the order they are used. */
  layerParameters(config: ModelConfig): ReadonlyMap<string, readonly number[]>
  /** One decoder layer: x [B, T, D] to [B, T, D]. */
  layer(config: ModelConfig, x: Value, weights: ReadonlyMap<string, Value>, positions: Positions): Value
}

const ARCHITECTURES: Readonly<Record<string, Architecture>> = { llama }

/** @throws GraspError MODEL_UNSUPPORTED */
export function architectureOf(config: ModelConfig): Architecture {
  const found = ARCHITECTURES[config.architecture]
  if (found) return found
  const known = Object.keys(ARCHITECTURES).join(', ')
  throw new GraspError(
    'MODEL_UNSUPPORTED',
    `model_type ${config.architecture} is not supported; supported: ${known}`,
  )
}

/** A decoder layer as a differentiable graph over padded rows: activations are [B, T, features]. */
import { attentionScaleOf, type ModelConfig } from '../architectures/config.ts'
import type { LayerOperations } from '../architectures/layer-operations.ts'
import { norm } from '../architectures/norm.ts'
import { add } from '../graph/operations/add.ts'
import { type AttentionOptions, attention } from '../graph/operations/attention.ts'
import { geglu } from '../graph/operations/geglu.ts'
import { linear } from '../graph/operations/linear.ts'
import { reshape } from '../graph/operations/reshape.ts'
import { rotary } from '../graph/operations/rotary.ts'
import { swiglu } from '../graph/operations/swiglu.ts'
import type { Value } from '../graph/value.ts'
import type { Positions } from './positions.ts'

/** @param weights the layer's parameters by their names behind `model.layers.N.` */
export function layerOperations(
  config: ModelConfig,
  weights: ReadonlyMap<string, Value>,
  { cos, sin, blocks }: Positions,
): LayerOperations<Value> {
  const weightOf = (name: string) => weights.get(`${name}.weight`)!
  const { heads, keyValueHeads, headDim, attentionSoftCap: softCap } = config
  const options: AttentionOptions = {
    heads,
    keyValueHeads,
    headDim,
    scale: attentionScaleOf(config),
    ...(softCap !== undefined && { softCap }),
  }
  return {
    norm: (x, name) => norm(config, x, weightOf(name)),
    project(x, name, _, bias) {
      const product = linear(x, weightOf(name))
      return bias ? add(product, weights.get(`${name}.bias`)!) : product
    },
    headNorm(x, name) {
      const [B, T, width] = x.shape as [string, string, number]
      const split = reshape(x, [B, T, width / headDim, headDim])
      return reshape(norm(config, split, weightOf(name)), x.shape)
    },
    rotary: x => rotary(x, cos, sin),
    attention: (query, key, value) => attention(query, key, value, blocks, options),
    gated: (activation, gate, up) => (activation === 'silu' ? swiglu : geglu)(gate, up),
    add,
  }
}

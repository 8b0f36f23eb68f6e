/**
 * A decoder layer as a differentiable graph over padded rows: activations are [B, T, features], and [B, R, features] from
 * the queries on where the output is wanted of a tail alone.
 */
import { attentionScaleOf, type ModelConfig } from '../architectures/config.ts'
import type { LayerOperations } from '../architectures/layer-operations.ts'
import { norm } from '../architectures/norm.ts'
import { adaptedLinear, type Factors } from '../graph/operations/adapted-linear.ts'
import { add } from '../graph/operations/add.ts'
import { type AttentionOptions, attention } from '../graph/operations/attention.ts'
import { geglu } from '../graph/operations/geglu.ts'
import { linear } from '../graph/operations/linear.ts'
import { reshape } from '../graph/operations/reshape.ts'
import { rotary } from '../graph/operations/rotary.ts'
import { slice } from '../graph/operations/slice.ts'
import { swiglu } from '../graph/operations/swiglu.ts'
import type { Value } from '../graph/value.ts'
import type { Positions } from './positions.ts'

/**
 * @param weights the layer's parameters by their names behind `model.layers.N.`
 * @param adapter factors by the names of the matrices that are adapted
 */
export function layerOperations(
  config: ModelConfig,
  weights: ReadonlyMap<string, Value>,
  { cos, sin, blocks, tail }: Positions,
  adapter: ReadonlyMap<string, Factors> = new Map(),
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
  const inTail = (x: Value, axis: number) =>
    tail && x.shape[axis] !== tail.length ? slice(x, axis, tail) : x
  return {
    norm: (x, name) => norm(config, x, weightOf(name)),
    project(from, name, _, bias) {
      const x = name === 'self_attn.q_proj' ? inTail(from, 1) : from
      const factors = adapter.get(`${name}.weight`)
      const weight = weightOf(name)
      const product = factors ? adaptedLinear(x, weight, factors) : linear(x, weight)
      return bias ? add(product, weights.get(`${name}.bias`)!) : product
    },
    headNorm(x, name) {
      const [B, T, width] = x.shape as [string, string, number]
      const split = reshape(x, [B, T, width / headDim, headDim])
      return reshape(norm(config, split, weightOf(name)), x.shape)
    },
    rotary: x =>
      x.shape[1] === cos.shape[0] ? rotary(x, cos, sin) : rotary(x, inTail(cos, 0), inTail(sin, 0)),
    attention: (query, key, value) => attention(query, key, value, blocks, options),
    gated: (activation, gate, up) => (activation === 'silu' ? swiglu : geglu)(gate, up),
    // A residual sum takes of the layer's input what there are queries of.
    add: (a, b) => (a.shape[1] === b.shape[1] ? add(a, b) : add(inTail(a, 1), inTail(b, 1))),
  }
}

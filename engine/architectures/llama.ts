/** The Llama decoder layer (Touvron et al., arXiv:2307.09288), as in transformers' modeling_llama. */
import { add } from '../graph/operations/add.ts'
import { attention } from '../graph/operations/attention.ts'
import { linear } from '../graph/operations/linear.ts'
import { rmsNorm } from '../graph/operations/rms-norm.ts'
import { rotary } from '../graph/operations/rotary.ts'
import { swiglu } from '../graph/operations/swiglu.ts'
import type { Value } from '../graph/value.ts'
import type { Architecture, Positions } from './architecture.ts'
import type { ModelConfig } from './config.ts'

const NORM = 'input_layernorm.weight'
const QUERY = 'self_attn.q_proj.weight'
const KEY = 'self_attn.k_proj.weight'
const VALUE = 'self_attn.v_proj.weight'
const OUT = 'self_attn.o_proj.weight'
const MIDDLE_NORM = 'post_attention_layernorm.weight'
const GATE = 'mlp.gate_proj.weight'
const UP = 'mlp.up_proj.weight'
const DOWN = 'mlp.down_proj.weight'

export const llama: Architecture = {
  layerParameters({ hiddenSize: D, intermediateSize: F, heads, keyValueHeads, headDim }) {
    return new Map([
      [NORM, [D]],
      [QUERY, [heads * headDim, D]],
      [KEY, [keyValueHeads * headDim, D]],
      [VALUE, [keyValueHeads * headDim, D]],
      [OUT, [D, heads * headDim]],
      [MIDDLE_NORM, [D]],
      [GATE, [F, D]],
      [UP, [F, D]],
      [DOWN, [D, F]],
    ])
  },

  layer(
    config: ModelConfig,
    x: Value,
    weights: ReadonlyMap<string, Value>,
    { cos, sin, blocks }: Positions,
  ): Value {
    const project = (value: Value, weight: string) => linear(value, weights.get(weight)!)
    const normed = rmsNorm(x, weights.get(NORM)!, config.normEpsilon)
    const q = rotary(project(normed, QUERY), cos, sin)
    const k = rotary(project(normed, KEY), cos, sin)
    const attended = attention(q, k, project(normed, VALUE), blocks, config)
    const middle = add(x, project(attended, OUT))
    const middleNormed = rmsNorm(middle, weights.get(MIDDLE_NORM)!, config.normEpsilon)
    const active = swiglu(project(middleNormed, GATE), project(middleNormed, UP))
    return add(middle, project(active, DOWN))
  },
}

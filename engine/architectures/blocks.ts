/** The two halves of a decoder layer that the architectures share, each before its residual sum. */
import type { ModelConfig } from './config.ts'
import type { GateActivation, LayerOperations } from './layer-operations.ts'

export interface SelfAttentionOptions {
  /** Queries, keys and values have a bias. */
  readonly bias?: boolean
  /** Queries and keys are normalised within each head before they are turned. */
  readonly headNorms?: boolean
}

export function selfAttention<X>(
  ops: LayerOperations<X>,
  { heads, keyValueHeads, headDim, hiddenSize }: ModelConfig,
  x: X,
  { bias = false, headNorms = false }: SelfAttentionOptions = {},
): X {
  const project = (name: string, count: number) =>
    ops.project(x, `self_attn.${name}_proj`, count * headDim, bias ? 'bias' : undefined)
  const turned = (name: string, count: number) => {
    const projected = project(name, count)
    return ops.rotary(headNorms ? ops.headNorm(projected, `self_attn.${name}_norm`) : projected)
  }
  const query = turned('q', heads)
  const key = turned('k', keyValueHeads)
  const attended = ops.attention(query, key, project('v', keyValueHeads))
  return ops.project(attended, 'self_attn.o_proj', hiddenSize)
}

export function feedForward<X>(
  ops: LayerOperations<X>,
  { intermediateSize, hiddenSize }: ModelConfig,
  x: X,
  activation: GateActivation,
): X {
  const gate = ops.project(x, 'mlp.gate_proj', intermediateSize)
  const up = ops.project(x, 'mlp.up_proj', intermediateSize)
  return ops.project(ops.gated(activation, gate, up), 'mlp.down_proj', hiddenSize)
}

/** The layer of Llama and its kin: a norm before each half, and a residual sum around it. */
export function preNormLayer<X>(
  ops: LayerOperations<X>,
  config: ModelConfig,
  x: X,
  options: SelfAttentionOptions = {},
): X {
  const middle = ops.add(x, selfAttention(ops, config, ops.norm(x, 'input_layernorm'), options))
  const normed = ops.norm(middle, 'post_attention_layernorm')
  return ops.add(middle, feedForward(ops, config, normed, 'silu'))
}

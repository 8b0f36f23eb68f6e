/** Names and shapes of a model's parameters, as Hugging Face stores them. */
import type { ModelConfig } from '../architectures/config.ts'

export function parameterShapes(config: ModelConfig): Map<string, readonly number[]> {
  const { hiddenSize: D, intermediateSize: F, vocabularySize: V, headDim } = config
  const queries = config.heads * headDim
  const keys = config.keyValueHeads * headDim
  const shapes = new Map<string, readonly number[]>([['model.embed_tokens.weight', [V, D]]])
  for (let layer = 0; layer < config.layers; layer++) {
    const prefix = `model.layers.${layer}.`
    shapes.set(`${prefix}input_layernorm.weight`, [D])
    shapes.set(`${prefix}self_attn.q_proj.weight`, [queries, D])
    shapes.set(`${prefix}self_attn.k_proj.weight`, [keys, D])
    shapes.set(`${prefix}self_attn.v_proj.weight`, [keys, D])
    shapes.set(`${prefix}self_attn.o_proj.weight`, [D, queries])
    shapes.set(`${prefix}post_attention_layernorm.weight`, [D])
    shapes.set(`${prefix}mlp.gate_proj.weight`, [F, D])
    shapes.set(`${prefix}mlp.up_proj.weight`, [F, D])
    shapes.set(`${prefix}mlp.down_proj.weight`, [D, F])
  }
  shapes.set('model.norm.weight', [D])
  if (!config.tiedHead) shapes.set('lm_head.weight', [V, D])
  return shapes
}

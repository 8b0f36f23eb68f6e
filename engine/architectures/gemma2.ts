/**
 * Gemma 2 (arXiv:2408.00118), as in transformers' modeling_gemma2: norms before and after each half of a layer,
 * whose weights are stored less 1; scaled embeddings; GeGLU; soft-caps of attention scores and of logits; and a
 * sliding window in every other layer.
 */
import { z } from 'zod'
import type { Architecture } from './architecture.ts'
import { feedForward, selfAttention } from './blocks.ts'
import { sharedConfig, sharedShape, size } from './shared-config.ts'
import { slidingWindowOf, slidingWindowShape } from './sliding-window.ts'

const positive = z.number().positive()
const schema = z.looseObject({
  ...sharedShape,
  ...slidingWindowShape,
  num_key_value_heads: size.default(4),
  head_dim: size.default(256),
  tie_word_embeddings: z.boolean().default(true),
  hidden_activation: z.string().default('gelu_pytorch_tanh'),
  query_pre_attn_scalar: positive.default(256),
  sliding_window: size.nullable().default(4096),
  attn_logit_softcapping: positive.nullable().default(50),
  final_logit_softcapping: positive.nullable().default(30),
})

export const gemma2: Architecture = {
  name: 'gemma2',

  configure(file) {
    const values = file.parse(schema)
    // `hidden_act` stands in published files too; transformers does not look at it.
    file.only('hidden_activation', values.hidden_activation, ['gelu_pytorch_tanh'])
    file.without(values, ['attention_bias', 'use_bidirectional_attention'])
    return {
      ...sharedConfig(file, 'gemma2', values),
      normOffset: 1,
      embeddingScale: Math.fround(Math.sqrt(values.hidden_size)),
      attentionScale: values.query_pre_attn_scalar ** -0.5,
      ...(values.attn_logit_softcapping !== null && { attentionSoftCap: values.attn_logit_softcapping }),
      ...(values.final_logit_softcapping !== null && { logitSoftCap: values.final_logit_softcapping }),
      ...slidingWindowOf(file, {
        layers: values.num_hidden_layers,
        layerTypes: values.layer_types,
        window: values.sliding_window,
        otherwise: layer => layer % 2 === 0,
      }),
    }
  },

  layer(ops, config, x) {
    const attended = selfAttention(ops, config, ops.norm(x, 'input_layernorm'))
    const middle = ops.add(x, ops.norm(attended, 'post_attention_layernorm'))
    const active = feedForward(ops, config, ops.norm(middle, 'pre_feedforward_layernorm'), 'gelu-tanh')
    return ops.add(middle, ops.norm(active, 'post_feedforward_layernorm'))
  },
}

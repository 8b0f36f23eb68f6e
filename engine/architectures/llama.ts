/** Llama (Touvron et al., arXiv:2307.09288) up to 3.2, and SmolLM2, as in transformers' modeling_llama. */
import { z } from 'zod'
import type { Architecture } from './architecture.ts'
import { preNormLayer } from './blocks.ts'
import { sharedConfig, sharedShape } from './shared-config.ts'
import { refuseWindows, slidingWindowShape } from './sliding-window.ts'

const schema = z.looseObject({
  ...sharedShape,
  ...slidingWindowShape,
  hidden_act: z.string().default('silu'),
})

export const llama: Architecture = {
  name: 'llama',

  configure(file) {
    const values = file.parse(schema)
    file.only('hidden_act', values.hidden_act, ['silu', 'swish'])
    file.without(values, ['attention_bias', 'attn_logit_softcapping', 'final_logit_softcapping'])
    refuseWindows(file, values)
    return sharedConfig(file, 'llama', values)
  },

  layer: (ops, config, x) => preNormLayer(ops, config, x),
}

/** What config.json says for Qwen2 and Qwen3 alike. */
import { z } from 'zod'
import type { ModelConfig } from './config.ts'
import type { ConfigFile } from './config-file.ts'
import { sharedConfig, sharedShape, size } from './shared-config.ts'
import { slidingWindowOf, slidingWindowShape } from './sliding-window.ts'

export const qwenShape = {
  ...sharedShape,
  ...slidingWindowShape,
  num_key_value_heads: size.nullable().default(32),
  hidden_act: z.string().default('silu'),
  use_sliding_window: z.boolean().default(false),
  sliding_window: size.nullable().default(4096),
  /** This many layers look at everything; the window, where it is used, is that of the layers after them. */
  max_window_layers: z.number().int().nonnegative().default(28),
}

const qwenSchema = z.looseObject(qwenShape)

const UNSUPPORTED = ['attn_logit_softcapping', 'final_logit_softcapping', 'dual_chunk_attention_config']

/** @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED */
export function qwenConfig(
  file: ConfigFile,
  architecture: string,
  values: z.infer<typeof qwenSchema>,
): ModelConfig {
  file.only('hidden_act', values.hidden_act, ['silu', 'swish'])
  file.without(values, UNSUPPORTED)
  const window = values.use_sliding_window ? values.sliding_window : null
  return {
    ...sharedConfig(file, architecture, values),
    ...slidingWindowOf(file, {
      layers: values.num_hidden_layers,
      layerTypes: values.layer_types,
      window,
      otherwise: layer => window !== null && layer >= values.max_window_layers,
    }),
  }
}

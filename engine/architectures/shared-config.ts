/** What config.json says for every architecture alike. */
import { z } from 'zod'
import type { ModelConfig } from './config.ts'
import type { ConfigFile } from './config-file.ts'
import { rotaryOf, rotaryShape } from './rotary-config.ts'

export const size = z.number().int().positive()

/** Beyond these a number is a mistake, and tables of that length would be made before anything else shows it. */
const [MOST_LAYERS, LONGEST_CONTEXT] = [10_000, 2 ** 24]

/** Defaults are those of transformers' configurations, which an architecture may replace by its own. */
export const sharedShape = {
  hidden_size: size,
  intermediate_size: size,
  num_hidden_layers: size.max(MOST_LAYERS),
  num_attention_heads: size,
  num_key_value_heads: size.nullish(),
  head_dim: size.nullish(),
  vocab_size: size,
  max_position_embeddings: size.max(LONGEST_CONTEXT),
  rms_norm_eps: z.number().positive().max(1).default(1e-6),
  tie_word_embeddings: z.boolean().default(false),
  ...rotaryShape,
}

const sharedSchema = z.looseObject(sharedShape)

/** Options that would change what every architecture computes. */
const UNSUPPORTED = ['mlp_bias', 'quantization_config', 'rope_interleaved', 'use_mrope']

/** @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED */
export function sharedConfig(
  file: ConfigFile,
  architecture: string,
  values: z.infer<typeof sharedSchema>,
): ModelConfig {
  file.without(values, UNSUPPORTED)
  const heads = values.num_attention_heads
  const keyValueHeads = values.num_key_value_heads ?? heads
  const headDim = values.head_dim ?? values.hidden_size / heads
  if (heads % keyValueHeads !== 0) {
    throw file.invalid(`num_attention_heads ${heads} is no multiple of num_key_value_heads ${keyValueHeads}`)
  }
  if (!Number.isInteger(headDim)) {
    throw file.invalid(`hidden_size ${values.hidden_size} is no multiple of num_attention_heads ${heads}`)
  }
  if (headDim % 8 !== 0) throw file.unsupported('head_dim', headDim, 'multiples of 8')
  return {
    architecture,
    hiddenSize: values.hidden_size,
    intermediateSize: values.intermediate_size,
    layers: values.num_hidden_layers,
    heads,
    keyValueHeads,
    headDim,
    vocabularySize: values.vocab_size,
    contextLength: values.max_position_embeddings,
    normEpsilon: values.rms_norm_eps,
    tiedHead: values.tie_word_embeddings,
    ...rotaryOf(file, values),
  }
}

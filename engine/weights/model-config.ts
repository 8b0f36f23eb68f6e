/**
 * Reads config.json of a Hugging Face directory. Whatever the engine does not implement is refused by name:
 * ignoring an option would run another model than the one that was given.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import type { ModelConfig } from '../architectures/config.ts'

const ARCHITECTURES = ['llama']

const size = z.number().int().positive()
const ropeSchema = z.looseObject({
  rope_type: z.string().optional(),
  type: z.string().optional(),
  rope_theta: z.number().positive().optional(),
})

/** Defaults are those of transformers' LlamaConfig. */
const llamaSchema = z.looseObject({
  hidden_size: size,
  intermediate_size: size,
  num_hidden_layers: size,
  num_attention_heads: size,
  num_key_value_heads: size.nullish(),
  head_dim: size.nullish(),
  vocab_size: size,
  max_position_embeddings: size,
  rms_norm_eps: z.number().positive().default(1e-6),
  rope_theta: z.number().positive().optional(),
  rope_scaling: ropeSchema.nullish(),
  rope_parameters: ropeSchema.nullish(),
  tie_word_embeddings: z.boolean().default(false),
  hidden_act: z.string().default('silu'),
})

/** config.json as it stands: exports copy it. */
export type RawConfig = Readonly<Record<string, unknown>>

/**
 * @param directory a Hugging Face model directory.
 * @throws GraspError MODEL_INVALID when config.json is missing or wrong, MODEL_UNSUPPORTED when it asks for
 * something that the engine lacks.
 */
export async function readModelConfig(directory: string): Promise<{ config: ModelConfig; raw: RawConfig }> {
  const path = join(directory, 'config.json')
  let raw: unknown
  try {
    raw = JSON.parse(await readFile(path, 'utf8'))
  } catch (cause) {
    throw new GraspError(
      'MODEL_INVALID',
      `${path} cannot be read: ${describeError(cause)}. A model is a Hugging Face directory with config.json, ` +
        '*.safetensors and tokenizer.json.',
      { cause },
    )
  }
  return { config: parseModelConfig(path, raw), raw: raw as RawConfig }
}

/** @param path names the file in errors. */
export function parseModelConfig(path: string, raw: unknown): ModelConfig {
  const type = z.looseObject({ model_type: z.string() }).safeParse(raw)
  if (!type.success) throw invalid(path, 'it lacks model_type')
  if (!ARCHITECTURES.includes(type.data.model_type)) {
    throw unsupported(path, 'model_type', type.data.model_type, ARCHITECTURES.join(', '))
  }
  const parsed = llamaSchema.safeParse(raw)
  if (!parsed.success) throw invalid(path, z.prettifyError(parsed.error))
  const values = parsed.data
  refuseOptions(path, values)
  const heads = values.num_attention_heads
  const keyValueHeads = values.num_key_value_heads ?? heads
  const headDim = values.head_dim ?? values.hidden_size / heads
  if (heads % keyValueHeads !== 0) {
    throw invalid(path, `num_attention_heads ${heads} is no multiple of num_key_value_heads ${keyValueHeads}`)
  }
  if (!Number.isInteger(headDim)) {
    throw invalid(path, `hidden_size ${values.hidden_size} is no multiple of num_attention_heads ${heads}`)
  }
  if (headDim % 8 !== 0) throw unsupported(path, 'head_dim', headDim, 'multiples of 8')
  return {
    architecture: 'llama',
    hiddenSize: values.hidden_size,
    intermediateSize: values.intermediate_size,
    layers: values.num_hidden_layers,
    heads,
    keyValueHeads,
    headDim,
    vocabularySize: values.vocab_size,
    contextLength: values.max_position_embeddings,
    ropeTheta: values.rope_theta ?? values.rope_parameters?.rope_theta ?? 10_000,
    normEpsilon: values.rms_norm_eps,
    tiedHead: values.tie_word_embeddings,
  }
}

function refuseOptions(path: string, values: z.infer<typeof llamaSchema>): void {
  if (values.hidden_act !== 'silu' && values.hidden_act !== 'swish') {
    throw unsupported(path, 'hidden_act', values.hidden_act, 'silu')
  }
  for (const name of ['rope_scaling', 'rope_parameters'] as const) {
    const kind = values[name]?.rope_type ?? values[name]?.type ?? 'default'
    if (kind !== 'default') throw unsupported(path, name, kind, 'plain rotary embeddings (rope_type default)')
  }
  for (const name of ['attention_bias', 'mlp_bias', 'rope_interleaved']) {
    if (values[name]) throw unsupported(path, name, values[name], 'false')
  }
  const partial = values.partial_rotary_factor ?? 1
  if (partial !== 1) throw unsupported(path, 'partial_rotary_factor', partial, '1')
  for (const name of ['sliding_window', 'quantization_config', 'layer_types']) {
    if (values[name] != null) throw unsupported(path, name, values[name], 'models without it')
  }
}

function invalid(path: string, what: string): GraspError {
  return new GraspError('MODEL_INVALID', `${path} is wrong: ${what}`)
}

function unsupported(path: string, option: string, found: unknown, supported: string): GraspError {
  return new GraspError(
    'MODEL_UNSUPPORTED',
    `${path}: ${option} is ${JSON.stringify(found)}; supported: ${supported}`,
  )
}

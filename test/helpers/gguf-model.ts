/** A Hugging Face model as a GGUF file, by the rules of llama.cpp's converter. */
import type { Tensor } from 'onnxruntime-node'
import { parseModelConfig } from '../../engine/weights/model-config.ts'
import { goldenWeights } from '../golden/weights.ts'
import { type TokenizerOptions, tokenizerMetadata } from './gguf-tokenizer.ts'
import { CHATML, tinyTokenizerJson } from './tiny-model.ts'
import { f32, type GgufContent, type GgufTensorData, type Typed, text, u32 } from './write-gguf.ts'

/** config.json of the small models; options of an architecture are added. */
export const SMALL_CONFIG = {
  vocab_size: 288,
  hidden_size: 32,
  intermediate_size: 40,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-5,
  rope_theta: 500,
  tie_word_embeddings: false,
}

export type RawModelConfig = Readonly<Record<string, unknown>> &
  typeof SMALL_CONFIG & { readonly model_type: string }

/** Of a small model with random weights and the tiny tokenizer. */
export function ggufModel(
  raw: RawModelConfig,
  tokenizer: Partial<TokenizerOptions> = {},
): {
  readonly content: GgufContent & { metadata: Record<string, Typed> }
  readonly weights: ReadonlyMap<string, Tensor>
} {
  const weights = goldenWeights(parseModelConfig('config.json', raw), 'student')
  const metadata = {
    ...modelMetadata(raw),
    ...tokenizerMetadata(tinyTokenizerJson(), {
      pre: 'gpt-2',
      size: raw.vocab_size,
      template: CHATML,
      ids: { bos: 0, eos: 2, padding: 0 },
      ...tokenizer,
    }),
  }
  const tensors = [...weights].map(([name, tensor]) => convert(raw, name, tensor))
  if (scalingOf(raw)?.rope_type === 'llama3') tensors.push(ropeDivisors(raw))
  return { content: { metadata, tensors }, weights }
}

function modelMetadata(raw: RawModelConfig): Record<string, Typed> {
  const scaling = scalingOf(raw)
  const own: Record<string, Typed> = {
    block_count: u32(raw.num_hidden_layers),
    context_length: u32(raw.max_position_embeddings),
    embedding_length: u32(raw.hidden_size),
    feed_forward_length: u32(raw.intermediate_size),
    'attention.head_count': u32(raw.num_attention_heads),
    'attention.head_count_kv': u32(raw.num_key_value_heads),
    'attention.key_length': u32(raw.head_dim),
    'attention.value_length': u32(raw.head_dim),
    'attention.layer_norm_rms_epsilon': f32(raw.rms_norm_eps),
    'rope.freq_base': f32(raw.rope_theta),
    ...(raw.model_type === 'llama' && { 'rope.dimension_count': u32(raw.head_dim) }),
    ...(scaling?.rope_type === 'linear' && {
      'rope.scaling.type': text('linear'),
      'rope.scaling.factor': f32(scaling.factor),
    }),
    ...(scaling?.rope_type === 'llama3' && {
      'rope.scaling.original_context_length': u32(scaling.original_max_position_embeddings!),
    }),
    ...(raw.model_type === 'gemma2' && {
      'attention.sliding_window': u32(raw.sliding_window as number),
      attn_logit_softcapping: f32(raw.attn_logit_softcapping as number),
      final_logit_softcapping: f32(raw.final_logit_softcapping as number),
    }),
  }
  return {
    'general.architecture': text(raw.model_type),
    ...Object.fromEntries(Object.entries(own).map(([key, value]) => [`${raw.model_type}.${key}`, value])),
  }
}

const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^model\.embed_tokens/, 'token_embd'],
  [/^model\.norm/, 'output_norm'],
  [/^lm_head/, 'output'],
  [/^model\.layers/, 'blk'],
  [/self_attn\.([qkv])_proj/, 'attn_$1'],
  [/self_attn\.([qk])_norm/, 'attn_$1_norm'],
  [/self_attn\.o_proj/, 'attn_output'],
  [/mlp\.(gate|up|down)_proj/, 'ffn_$1'],
  [/input_layernorm/, 'attn_norm'],
  [/pre_feedforward_layernorm/, 'ffn_norm'],
  [/post_feedforward_layernorm/, 'post_ffw_norm'],
]

function convert(raw: RawModelConfig, parameter: string, tensor: Tensor): GgufTensorData {
  let values = tensor.data as Float32Array
  const gemma = raw.model_type === 'gemma2'
  if (gemma && parameter.endsWith('norm.weight')) values = values.map(value => value + 1)
  if (raw.model_type === 'llama' && /[qk]_proj/.test(parameter)) {
    values = interleave(values, raw.head_dim, tensor.dims.length === 1 ? 1 : tensor.dims[1]!)
  }
  const names = [...NAMES, [/post_attention_layernorm/, gemma ? 'post_attention_norm' : 'ffn_norm'] as const]
  const name = names.reduce((result, [pattern, to]) => result.replace(pattern, to), parameter)
  return { name, type: 0, shape: tensor.dims, bytes: bytesOf(values) }
}

/** Rows i and i + E/2 of each head become neighbours. */
function interleave(values: Float32Array, headDim: number, columns: number): Float32Array {
  const result = new Float32Array(values.length)
  const half = headDim / 2
  for (let row = 0; row * columns < values.length; row++) {
    const within = row % headDim
    const to = row - within + (within < half ? 2 * within : 2 * (within - half) + 1)
    result.set(values.subarray(row * columns, (row + 1) * columns), to * columns)
  }
  return result
}

interface Scaling {
  readonly rope_type: string
  readonly factor: number
  readonly low_freq_factor?: number
  readonly high_freq_factor?: number
  readonly original_max_position_embeddings?: number
}

function scalingOf(raw: RawModelConfig): Scaling | undefined {
  return raw.rope_scaling as Scaling | undefined
}

/** What each frequency is divided by. */
function ropeDivisors(raw: RawModelConfig): GgufTensorData {
  const {
    factor,
    low_freq_factor: low,
    high_freq_factor: high,
    original_max_position_embeddings: context,
  } = scalingOf(raw) as Required<Scaling>
  const half = raw.head_dim / 2
  const divisors = Float32Array.from({ length: half }, (_, i) => {
    const turns = (context * raw.rope_theta ** (-i / half)) / (2 * Math.PI)
    if (turns > high) return 1
    if (turns < low) return factor
    const smooth = (turns - low) / (high - low)
    return 1 / ((1 - smooth) / factor + smooth)
  })
  return { name: 'rope_freqs.weight', type: 0, shape: [half], bytes: bytesOf(divisors) }
}

function bytesOf(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
}

/**
 * A GGUF file's metadata as the config.json that the model had on Hugging Face. What the engine supports of it is
 * decided where every config.json is read; here only what that file could not say is refused.
 */
import type { RawConfig } from '../model-config.ts'
import type { GgufHeader } from './gguf-header.ts'
import { llama3Scaling } from './llama3-scaling.ts'
import type { Metadata } from './metadata.ts'
import { OUTPUT_HEAD, TOKEN_EMBEDDING } from './tensor-places.ts'

const CLASSES: Readonly<Record<string, string>> = {
  llama: 'LlamaForCausalLM',
  qwen2: 'Qwen2ForCausalLM',
  qwen3: 'Qwen3ForCausalLM',
  gemma2: 'Gemma2ForCausalLM',
}

/** Keys that would change what the model computes, behind the architecture's name, and the value that does not. */
const NEUTRAL: Readonly<Record<string, number | boolean>> = {
  expert_count: 0,
  'attention.causal': true,
  'attention.clamp_kqv': 0,
  'attention.max_alibi_bias': 0,
  'attention.scale': 0,
  embedding_scale: 0,
  logit_scale: 0,
  residual_scale: 0,
  pooling_type: 0,
}

/** Gemma 2's 27B alone scales its queries by the model's width over its heads; no key says so. */
const GEMMA2_27B_LAYERS = 46

/**
 * @param divisors the values of rope_freqs.weight, where the file has it.
 * @throws GraspError MODEL_INVALID naming the key, MODEL_UNSUPPORTED
 */
export function configJson(header: GgufHeader, divisors: Float32Array | undefined): RawConfig {
  const { metadata, tensors } = header
  const architecture = metadata.string('general.architecture')
  const known = CLASSES[architecture]
  if (known === undefined) {
    throw metadata.unsupported(
      `general.architecture is ${architecture}; supported: ${Object.keys(CLASSES).join(', ')}`,
    )
  }
  const key = (name: string) => `${architecture}.${name}`
  refuse(metadata, architecture)
  const embedding = tensors.get(TOKEN_EMBEDDING)
  if (embedding?.shape.length !== 2)
    throw metadata.invalid(`it lacks the tensor ${TOKEN_EMBEDDING} [vocabulary, features]`)
  const heads = everyLayer(metadata, key('attention.head_count'))!
  const hiddenSize = metadata.size(key('embedding_length'))
  const headDim = headLength(metadata, architecture, hiddenSize / heads)
  const layers = metadata.size(key('block_count'))
  const theta = metadata.optionalNumber(key('rope.freq_base')) ?? 10_000
  return {
    architectures: [known],
    model_type: architecture,
    vocab_size: embedding.shape[0]!,
    hidden_size: hiddenSize,
    intermediate_size: everyLayer(metadata, key('feed_forward_length')),
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: everyLayer(metadata, key('attention.head_count_kv'), heads),
    head_dim: headDim,
    max_position_embeddings: metadata.size(key('context_length')),
    rms_norm_eps: metadata.number(key('attention.layer_norm_rms_epsilon')),
    rope_theta: theta,
    rope_scaling: ropeScaling(header, architecture, theta, divisors),
    tie_word_embeddings: !tensors.has(OUTPUT_HEAD),
    ...specialTokenIds(metadata),
    ...(architecture === 'gemma2'
      ? gemma2(metadata, layers === GEMMA2_27B_LAYERS ? hiddenSize / heads : headDim)
      : others(header, architecture)),
  }
}

function refuse(metadata: Metadata, architecture: string): void {
  const neutral = architecture === 'gemma2' ? NEUTRAL : { ...NEUTRAL, 'attention.sliding_window': 0 }
  for (const [name, harmless] of Object.entries(neutral)) {
    const found = metadata.get(`${architecture}.${name}`)
    if (found === undefined || found === harmless) continue
    throw metadata.unsupported(`${architecture}.${name} is ${found}; supported: models without it`)
  }
}

function others({ tensors }: GgufHeader, architecture: string): Record<string, unknown> {
  return {
    hidden_act: 'silu',
    // Qwen2 has biases always, and its configuration no word for them.
    ...(architecture !== 'qwen2' && { attention_bias: tensors.has('blk.0.attn_q.bias') }),
    ...(architecture === 'llama' && { mlp_bias: tensors.has('blk.0.ffn_up.bias') }),
  }
}

/** Where the file is silent, llama.cpp's defaults, which are transformers' too. */
function gemma2(metadata: Metadata, queryScale: number): Record<string, unknown> {
  const key = (name: string) => `gemma2.${name}`
  return {
    hidden_act: 'gelu_pytorch_tanh',
    hidden_activation: 'gelu_pytorch_tanh',
    attention_bias: false,
    query_pre_attn_scalar: queryScale,
    sliding_window: metadata.optionalSize(key('attention.sliding_window')) ?? 4096,
    attn_logit_softcapping: metadata.optionalNumber(key('attn_logit_softcapping')) ?? 50,
    final_logit_softcapping: metadata.optionalNumber(key('final_logit_softcapping')) ?? 30,
  }
}

/** Features of a head. Queries, keys, values and rotary embeddings all have them. */
function headLength(metadata: Metadata, architecture: string, otherwise: number): number {
  const found = metadata.optionalSize(`${architecture}.attention.key_length`) ?? otherwise
  for (const name of ['attention.value_length', 'rope.dimension_count']) {
    const value = metadata.optionalSize(`${architecture}.${name}`) ?? found
    if (value !== found) {
      throw metadata.unsupported(
        `${architecture}.${name} is ${value}; supported: the length of a head, ${found}`,
      )
    }
  }
  return found
}

/** A size that the format allows to differ by layer. */
function everyLayer(metadata: Metadata, key: string, otherwise?: number): number | undefined {
  const value = metadata.get(key)
  if (!Array.isArray(value)) return metadata.optionalSize(key) ?? otherwise ?? metadata.size(key)
  const [first, ...rest] = metadata.numbers(key)
  if (first !== undefined && rest.every(size => size === first)) return first
  throw metadata.unsupported(`${key} differs by layer; supported: the same for all layers`)
}

function ropeScaling(
  { metadata }: GgufHeader,
  architecture: string,
  theta: number,
  divisors: Float32Array | undefined,
): Record<string, unknown> | null {
  const key = (name: string) => `${architecture}.rope.scaling.${name}`
  const kind = metadata.optionalString(key('type')) ?? 'none'
  const context = metadata.optionalSize(key('original_context_length'))
  if (divisors) {
    const scaling = llama3Scaling(divisors, theta, context)
    if (scaling && (kind === 'none' || kind === 'llama3')) return scaling
    throw metadata.unsupported('its tensor rope_freqs.weight holds no divisors of the rotary scaling llama3')
  }
  // The key of old files.
  const linear = metadata.optionalNumber(`${architecture}.rope.scale_linear`)
  if (kind === 'none')
    return linear === undefined || linear === 1 ? null : { rope_type: 'linear', factor: linear }
  return {
    rope_type: kind,
    factor: metadata.optionalNumber(key('factor')) ?? 1,
    ...(context !== undefined && { original_max_position_embeddings: context }),
  }
}

/** `bos_token_id`, `eos_token_id` (all that end a response) and `pad_token_id`, as config.json and generation_config.json have them. */
export function specialTokenIds(metadata: Metadata): Record<string, unknown> {
  const id = (name: string) => metadata.optionalNumber(`tokenizer.ggml.${name}_token_id`)
  const stops = [...new Set([id('eos'), id('eot'), id('eom')].filter(stop => stop !== undefined))]
  const ids = {
    bos_token_id: id('bos'),
    eos_token_id: stops.length > 1 ? stops : stops[0],
    pad_token_id: id('padding'),
  }
  return Object.fromEntries(Object.entries(ids).filter(([, value]) => value !== undefined))
}

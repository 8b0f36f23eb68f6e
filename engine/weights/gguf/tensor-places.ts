/**
 * Where a Hugging Face parameter is in a GGUF file, and what llama.cpp's converter did to it on the way.
 * Facts: llama.cpp's convert_hf_to_gguf.py and gguf-py's tensor_mapping.py.
 */
import type { ModelConfig } from '../../architectures/config.ts'
import { EMBEDDING, FINAL_NORM } from '../parameter-shapes.ts'
import type { ReadOptions } from './read-tensor.ts'

export const TOKEN_EMBEDDING = 'token_embd.weight'
export const OUTPUT_HEAD = 'output.weight'
/** Divisors of the rotary frequencies, of Llama 3's scaling; the configuration holds what they follow from. */
export const ROTARY_DIVISORS = 'rope_freqs.weight'

const GLOBAL: Readonly<Record<string, string>> = {
  [EMBEDDING]: TOKEN_EMBEDDING,
  [FINAL_NORM]: 'output_norm.weight',
  'lm_head.weight': OUTPUT_HEAD,
}

/** Within a layer, without `.weight` or `.bias`. */
const LAYER: Readonly<Record<string, string>> = {
  input_layernorm: 'attn_norm',
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.o_proj': 'attn_output',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
  post_attention_layernorm: 'ffn_norm',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
}
/** Gemma 2 has norms on both sides of each half. */
const GEMMA2: Readonly<Record<string, string>> = {
  ...LAYER,
  post_attention_layernorm: 'post_attention_norm',
  pre_feedforward_layernorm: 'ffn_norm',
  post_feedforward_layernorm: 'post_ffw_norm',
}

export interface TensorPlace extends ReadOptions {
  readonly name: string
}

/** @param parameter by its Hugging Face name. */
export function tensorPlace(config: ModelConfig, parameter: string): TensorPlace {
  const name = tensorName(config, parameter)
  const rowOrder = rotaryRows(config, parameter)
  return {
    name,
    ...(rowOrder && { rowOrder }),
    // Gemma's norms multiply by 1 + weight; the converter stores the sum.
    ...(config.normOffset !== undefined &&
      parameter.endsWith('norm.weight') && { offset: -config.normOffset }),
  }
}

function tensorName({ architecture }: ModelConfig, parameter: string): string {
  const global = GLOBAL[parameter]
  if (global !== undefined) return global
  const [, layer, middle, suffix] = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(parameter)!
  return `blk.${layer}.${(architecture === 'gemma2' ? GEMMA2 : LAYER)[middle!]}.${suffix}`
}

/**
 * Llama's rotary embedding turns feature i of a head together with i + E/2, llama.cpp's its neighbours 2i and 2i + 1:
 * so the converter interleaves the two halves of each head's rows of the query and key projections.
 */
function rotaryRows(
  { architecture, headDim }: ModelConfig,
  parameter: string,
): ((row: number) => number) | undefined {
  if (architecture !== 'llama' || !/\.[qk]_proj\.(weight|bias)$/.test(parameter)) return undefined
  return row => {
    const within = row % headDim
    return row - within + (within & 1) * (headDim / 2) + (within >> 1)
  }
}

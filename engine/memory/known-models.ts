/** Shapes of well-known models, from their published config.json: what counts of them for memory. */
import type { ModelConfig } from '../architectures/config.ts'
import { parseModelConfig } from '../weights/model-config.ts'

export interface KnownModel {
  readonly name: string
  readonly config: ModelConfig
}

/** hidden_size, intermediate_size, layers, heads, key/value heads, vocabulary, context; then what differs. */
type Shape = readonly [number, number, number, number, number, number, number, object?]

const untied = { tie_word_embeddings: false }
const GEMMA = { head_dim: 256, hidden_activation: 'gelu_pytorch_tanh', attn_logit_softcapping: 50 }
const gemma = (scalar: number) => ({
  ...GEMMA,
  final_logit_softcapping: 30,
  query_pre_attn_scalar: scalar,
  sliding_window: 4096,
})

const SHAPES: Readonly<Record<string, readonly [architecture: string, ...Shape]>> = {
  'SmolLM2-135M': ['llama', 576, 1536, 30, 9, 3, 49152, 8192],
  'SmolLM2-360M': ['llama', 960, 2560, 32, 15, 5, 49152, 8192],
  'Qwen2.5-0.5B': ['qwen2', 896, 4864, 24, 14, 2, 151936, 32768],
  'Qwen3-0.6B': ['qwen3', 1024, 3072, 28, 16, 8, 151936, 40960, { head_dim: 128 }],
  'Llama-3.2-1B': ['llama', 2048, 8192, 16, 32, 8, 128256, 131072],
  'Qwen2.5-1.5B': ['qwen2', 1536, 8960, 28, 12, 2, 151936, 32768],
  'SmolLM2-1.7B': ['llama', 2048, 8192, 24, 32, 32, 49152, 8192],
  'Qwen3-1.7B': ['qwen3', 2048, 6144, 28, 16, 8, 151936, 40960, { head_dim: 128 }],
  'gemma-2-2b': ['gemma2', 2304, 9216, 26, 8, 4, 256000, 8192, gemma(256)],
  'Qwen2.5-3B': ['qwen2', 2048, 11008, 36, 16, 2, 151936, 32768],
  'Llama-3.2-3B': ['llama', 3072, 8192, 28, 24, 8, 128256, 131072],
  'Qwen3-4B': ['qwen3', 2560, 9728, 36, 32, 8, 151936, 40960, { head_dim: 128 }],
  'Qwen2.5-7B': ['qwen2', 3584, 18944, 28, 28, 4, 152064, 32768, untied],
  'Llama-3.1-8B': ['llama', 4096, 14336, 32, 32, 8, 128256, 131072, untied],
  'gemma-2-9b': ['gemma2', 3584, 14336, 42, 16, 8, 256000, 8192, gemma(256)],
  'Qwen2.5-14B': ['qwen2', 5120, 13824, 48, 40, 8, 152064, 32768, untied],
  'gemma-2-27b': ['gemma2', 4608, 36864, 46, 32, 16, 256000, 8192, { ...gemma(144), head_dim: 128 }],
  'Qwen2.5-32B': ['qwen2', 5120, 27648, 64, 40, 8, 152064, 32768, untied],
  'Llama-3.1-70B': ['llama', 8192, 28672, 80, 64, 8, 128256, 131072, untied],
}

/** The smallest first. */
export function knownModels(): KnownModel[] {
  return Object.entries(SHAPES).map(([name, [architecture, ...shape]]) => ({
    name,
    config: configOf(name, architecture, shape),
  }))
}

function configOf(name: string, architecture: string, shape: Shape): ModelConfig {
  const [hidden, intermediate, layers, heads, keyValueHeads, vocabulary, context, rest = {}] = shape
  return parseModelConfig(name, {
    model_type: architecture,
    hidden_size: hidden,
    intermediate_size: intermediate,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: keyValueHeads,
    vocab_size: vocabulary,
    max_position_embeddings: context,
    hidden_act: 'silu',
    rms_norm_eps: 1e-6,
    rope_theta: 10_000,
    tie_word_embeddings: true,
    ...rest,
  })
}

/** A small configuration of each architecture, of what a GGUF file can say. */
import { type RawModelConfig, SMALL_CONFIG } from './gguf-model.ts'

export const SMALL_MODELS: Readonly<Record<string, RawModelConfig>> = {
  llama: { ...SMALL_CONFIG, model_type: 'llama' },
  'llama, tied head': { ...SMALL_CONFIG, model_type: 'llama', tie_word_embeddings: true },
  'llama, linear scaling': {
    ...SMALL_CONFIG,
    model_type: 'llama',
    rope_scaling: { rope_type: 'linear', factor: 4 },
  },
  'llama, llama3 scaling': {
    ...SMALL_CONFIG,
    model_type: 'llama',
    rope_scaling: {
      rope_type: 'llama3',
      factor: 8,
      low_freq_factor: 1,
      high_freq_factor: 4,
      original_max_position_embeddings: 32,
    },
  },
  qwen2: { ...SMALL_CONFIG, model_type: 'qwen2', head_dim: 8, tie_word_embeddings: true },
  qwen3: { ...SMALL_CONFIG, model_type: 'qwen3', head_dim: 24 },
  gemma2: {
    ...SMALL_CONFIG,
    model_type: 'gemma2',
    num_hidden_layers: 3,
    tie_word_embeddings: true,
    hidden_activation: 'gelu_pytorch_tanh',
    query_pre_attn_scalar: 16,
    sliding_window: 5,
    attn_logit_softcapping: 1.5,
    final_logit_softcapping: 2,
  },
}

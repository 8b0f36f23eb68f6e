import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ModelConfig } from '../../../engine/architectures/config.ts'
import { layerParameters } from '../../../engine/architectures/layer-parameters.ts'

const config = (architecture: string) =>
  ({
    architecture,
    hiddenSize: 32,
    intermediateSize: 40,
    heads: 4,
    keyValueHeads: 2,
    headDim: 16,
  }) as ModelConfig

const shapes = (architecture: string) => Object.fromEntries(layerParameters(config(architecture)))

const LLAMA = {
  'input_layernorm.weight': [32],
  'self_attn.q_proj.weight': [64, 32],
  'self_attn.k_proj.weight': [32, 32],
  'self_attn.v_proj.weight': [32, 32],
  'self_attn.o_proj.weight': [32, 64],
  'post_attention_layernorm.weight': [32],
  'mlp.gate_proj.weight': [40, 32],
  'mlp.up_proj.weight': [40, 32],
  'mlp.down_proj.weight': [32, 40],
}

test('parameters follow from the operations of the layer', () => {
  assert.deepEqual(shapes('llama'), LLAMA)
  // The order in which gradients' norms are summed: weights of runs depend on it.
  assert.deepEqual([...layerParameters(config('llama')).keys()], Object.keys(LLAMA))
  assert.deepEqual(shapes('qwen2'), {
    ...LLAMA,
    'self_attn.q_proj.bias': [64],
    'self_attn.k_proj.bias': [32],
    'self_attn.v_proj.bias': [32],
  })
  assert.deepEqual(shapes('qwen3'), {
    ...LLAMA,
    'self_attn.q_norm.weight': [16],
    'self_attn.k_norm.weight': [16],
  })
  assert.deepEqual(shapes('gemma2'), {
    ...LLAMA,
    'pre_feedforward_layernorm.weight': [32],
    'post_feedforward_layernorm.weight': [32],
  })
})

test('an unknown architecture is an error that names it and what there is', () => {
  assert.throws(() => shapes('constructor'), {
    code: 'MODEL_UNSUPPORTED',
    message: 'model_type constructor is not supported; supported: llama, qwen2, qwen3, gemma2',
  })
})

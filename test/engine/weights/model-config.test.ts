import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseModelConfig } from '../../../engine/weights/model-config.ts'

const LLAMA = {
  model_type: 'llama',
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  vocab_size: 300,
  max_position_embeddings: 128,
}
const parse = (changes: Record<string, unknown>) => parseModelConfig('config.json', { ...LLAMA, ...changes })

test('what config.json leaves out takes the defaults of transformers', () => {
  assert.deepEqual(parse({}), {
    architecture: 'llama',
    hiddenSize: 64,
    intermediateSize: 96,
    layers: 2,
    heads: 4,
    keyValueHeads: 4,
    headDim: 16,
    vocabularySize: 300,
    contextLength: 128,
    ropeTheta: 10000,
    normEpsilon: 1e-6,
    tiedHead: false,
  })
})

test('the rotary base is read in its old and in its new place', () => {
  assert.equal(parse({ rope_theta: 5e5, rope_scaling: null }).ropeTheta, 5e5)
  assert.equal(parse({ rope_parameters: { rope_type: 'default', rope_theta: 1e6 } }).ropeTheta, 1e6)
})

test('what the engine lacks is refused by name', () => {
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ model_type: 'mamba' }, /model_type is "mamba"; supported: llama/],
    [{ rope_scaling: { rope_type: 'llama3', factor: 8 } }, /rope_scaling is "llama3"/],
    [{ rope_scaling: { type: 'linear', factor: 2 } }, /rope_scaling is "linear"/],
    [{ rope_parameters: { rope_type: 'yarn' } }, /rope_parameters is "yarn"/],
    [{ attention_bias: true }, /attention_bias is true/],
    [{ mlp_bias: true }, /mlp_bias is true/],
    [{ sliding_window: 4096 }, /sliding_window is 4096/],
    [{ hidden_act: 'gelu' }, /hidden_act is "gelu"; supported: silu/],
    [{ quantization_config: { bits: 4 } }, /quantization_config is \{"bits":4\}/],
    [{ partial_rotary_factor: 0.5 }, /partial_rotary_factor is 0.5/],
    [{ head_dim: 20 }, /head_dim is 20; supported: multiples of 8/],
  ]
  for (const [changes, message] of cases)
    assert.throws(() => parse(changes), { code: 'MODEL_UNSUPPORTED', message })
})

test('a wrong config.json is refused with the field', () => {
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ model_type: undefined }, /lacks model_type/],
    [{ hidden_size: undefined }, /hidden_size/],
    [{ num_hidden_layers: '2' }, /num_hidden_layers/],
    [{ num_key_value_heads: 3 }, /num_attention_heads 4 is no multiple of num_key_value_heads 3/],
    [{ num_attention_heads: 6 }, /hidden_size 64 is no multiple of num_attention_heads 6/],
  ]
  for (const [changes, message] of cases)
    assert.throws(() => parse(changes), { code: 'MODEL_INVALID', message })
  assert.throws(() => parseModelConfig('config.json', []), { code: 'MODEL_INVALID' })
})

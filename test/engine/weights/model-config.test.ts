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

const of = (type: string, changes: Record<string, unknown> = {}) =>
  parse({ model_type: type, num_key_value_heads: 2, ...changes })

test('Qwen2 and Qwen3: defaults of their own, and a window where it is switched on', () => {
  const plain = of('qwen2')
  assert.deepEqual(plain, { ...parse({ num_key_value_heads: 2 }), architecture: 'qwen2' })
  assert.equal(of('qwen3').headDim, 128)
  // As published: the window stands there and is off.
  assert.deepEqual(
    of('qwen2', { sliding_window: 32, use_sliding_window: false, max_window_layers: 1 }),
    plain,
  )
  const window = { use_sliding_window: true, sliding_window: 32, max_window_layers: 1 }
  for (const type of ['qwen2', 'qwen3']) {
    assert.deepEqual(of(type, window).slidingWindow, { tokens: 32, layers: [false, true] })
    const layers = { ...window, layer_types: ['sliding_attention', 'full_attention'] }
    assert.deepEqual(of(type, layers).slidingWindow, { tokens: 32, layers: [true, false] })
  }
  assert.equal(of('qwen2', { ...window, max_window_layers: 2 }).slidingWindow, undefined)
})

test('Gemma 2: its defaults, and what can be switched off', () => {
  assert.deepEqual(of('gemma2'), {
    ...parse({ num_key_value_heads: 2 }),
    architecture: 'gemma2',
    headDim: 256,
    tiedHead: true,
    normOffset: 1,
    embeddingScale: 8,
    attentionScale: 1 / 16,
    attentionSoftCap: 50,
    logitSoftCap: 30,
    slidingWindow: { tokens: 4096, layers: [true, false] },
  })
  const bare = of('gemma2', {
    attn_logit_softcapping: null,
    final_logit_softcapping: null,
    layer_types: ['full_attention', 'full_attention'],
    sliding_window: null,
  })
  for (const name of ['attentionSoftCap', 'logitSoftCap', 'slidingWindow']) assert(!(name in bare))
  // √D is rounded to f32, as transformers does.
  assert.equal(of('gemma2', { hidden_size: 72 }).embeddingScale, Math.fround(Math.sqrt(72)))
})

test('the rotary base is read in its old and in its new place, and so is its scaling', () => {
  assert.equal(parse({ rope_theta: 5e5, rope_scaling: null }).ropeTheta, 5e5)
  assert.equal(parse({ rope_parameters: { rope_type: 'default', rope_theta: 1e6 } }).ropeTheta, 1e6)
  const linear = parse({ rope_theta: 2e4, rope_scaling: { type: 'linear', factor: 2 } })
  assert.deepEqual([linear.ropeTheta, linear.ropeScaling], [2e4, { kind: 'linear', factor: 2 }])
  const llama3 = {
    rope_type: 'llama3',
    factor: 8,
    low_freq_factor: 1,
    high_freq_factor: 4,
    original_max_position_embeddings: 64,
  }
  for (const place of ['rope_scaling', 'rope_parameters']) {
    assert.deepEqual(parse({ [place]: llama3 }).ropeScaling, {
      kind: 'llama3',
      factor: 8,
      lowFrequencyFactor: 1,
      highFrequencyFactor: 4,
      originalContextLength: 64,
    })
  }
})

test('what the engine lacks is refused by name', () => {
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ model_type: 'mamba' }, /model_type is "mamba"; supported: llama, qwen2, qwen3, gemma2/],
    [{ model_type: 'qwen3_moe' }, /model_type is "qwen3_moe"/],
    [
      { rope_scaling: { rope_type: 'dynamic', factor: 8 } },
      /rope_scaling is "dynamic"; supported: default, lin/,
    ],
    [{ rope_scaling: { type: 'mrope', mrope_section: [2, 3, 3] } }, /rope_scaling is "mrope"/],
    [{ rope_parameters: { rope_type: 'yarn' } }, /rope_parameters is "yarn"/],
    [{ rope_parameters: { full_attention: { rope_theta: 1 } } }, /rope_parameters.full_attention is/],
    [{ attention_bias: true }, /attention_bias is true/],
    [{ mlp_bias: true }, /mlp_bias is true/],
    [{ sliding_window: 4096 }, /sliding_window is 4096/],
    [{ layer_types: ['full_attention', 'sliding_attention'] }, /layer_types is "sliding_attention"/],
    [{ hidden_act: 'gelu' }, /hidden_act is "gelu"; supported: silu/],
    [{ final_logit_softcapping: 30 }, /final_logit_softcapping is 30/],
    [{ quantization_config: { bits: 4 } }, /quantization_config is \{"bits":4\}/],
    [{ partial_rotary_factor: 0.5 }, /partial_rotary_factor is 0.5/],
    [{ rope_parameters: { partial_rotary_factor: 0.5 } }, /partial_rotary_factor is 0.5/],
    [{ head_dim: 20 }, /head_dim is 20; supported: multiples of 8/],
    [{ model_type: 'qwen2', use_mrope: true }, /use_mrope is true/],
    [{ model_type: 'qwen2', dual_chunk_attention_config: {} }, /dual_chunk_attention_config/],
    [{ model_type: 'qwen3', attention_bias: true }, /attention_bias is true/],
    [
      { model_type: 'qwen3', layer_types: ['full_attention', 'linear'] },
      /layer_types is "linear"; supported/,
    ],
    [{ model_type: 'gemma2', hidden_activation: 'gelu' }, /hidden_activation is "gelu"; supported: gelu_pyt/],
    [{ model_type: 'gemma2', use_bidirectional_attention: true }, /use_bidirectional_attention is true/],
  ]
  for (const [changes, message] of cases)
    assert.throws(() => parse({ num_key_value_heads: 2, ...changes }), { code: 'MODEL_UNSUPPORTED', message })
})

test('a wrong config.json is refused with the field', () => {
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ model_type: undefined }, /lacks model_type/],
    [{ hidden_size: undefined }, /hidden_size/],
    [{ num_hidden_layers: '2' }, /num_hidden_layers/],
    [{ num_key_value_heads: 3 }, /num_attention_heads 4 is no multiple of num_key_value_heads 3/],
    [{ num_attention_heads: 6 }, /hidden_size 64 is no multiple of num_attention_heads 6/],
    [{ rope_scaling: { rope_type: 'linear' } }, /rope_scaling of rope_type linear lacks factor/],
    [{ rope_scaling: { rope_type: 'llama3', factor: 8 } }, /lacks original_max_position_embeddings/],
    [
      { model_type: 'gemma2', layer_types: ['full_attention'] },
      /layer_types has 1 entries for num_hidden_layers 2/,
    ],
    [{ model_type: 'gemma2', sliding_window: null }, /there is no sliding_window/],
    [{ model_type: 'gemma2', final_logit_softcapping: -1 }, /final_logit_softcapping/],
  ]
  for (const [changes, message] of cases)
    assert.throws(() => parse(changes), { code: 'MODEL_INVALID', message })
  assert.throws(() => parseModelConfig('config.json', []), { code: 'MODEL_INVALID' })
})

test('a value that cannot be meant is told, with what is expected', () => {
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ hidden_size: -64 }, /config\.json is wrong: hidden_size is -64: .*>0/],
    [{ hidden_size: '64' }, /hidden_size is "64": .*expected number, received string/],
    [{ vocab_size: undefined }, /it lacks vocab_size/],
    [{ num_hidden_layers: 1e9 }, /num_hidden_layers is 1000000000: .*<=10000/],
    [{ max_position_embeddings: 2 ** 31 }, /max_position_embeddings is 2147483648: .*<=16777216/],
    [{ rms_norm_eps: 1e300 }, /rms_norm_eps is 1e\+300: .*<=1$/],
    [{ rope_scaling: { rope_type: 'linear', factor: 0 } }, /rope_scaling\.factor is 0: .*>0/],
    [{ hidden_size: null, vocab_size: 0 }, /hidden_size is null: .*; vocab_size is 0: /],
  ]
  for (const [change, message] of cases) {
    assert.throws(() => parse(change), { code: 'MODEL_INVALID', message })
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { knownModels } from '../../../engine/memory/known-models.ts'
import { parameterCount } from '../../../engine/memory/parameter-count.ts'

/** As published; tied embeddings count once. */
const PARAMETERS: Readonly<Record<string, number>> = {
  'SmolLM2-135M': 134_515_008,
  'SmolLM2-360M': 361_821_120,
  'Qwen2.5-0.5B': 494_032_768,
  'Qwen3-0.6B': 596_049_920,
  'Llama-3.2-1B': 1_235_814_400,
  'Qwen2.5-1.5B': 1_543_714_304,
  'SmolLM2-1.7B': 1_711_376_384,
  'Qwen3-1.7B': 1_720_574_976,
  'gemma-2-2b': 2_614_341_888,
  'Qwen2.5-3B': 3_085_938_688,
  'Llama-3.2-3B': 3_212_749_824,
  'Qwen3-4B': 4_022_468_096,
  'Qwen2.5-7B': 7_615_616_512,
  'Llama-3.1-8B': 8_030_261_248,
  'gemma-2-9b': 9_241_705_984,
  'Qwen2.5-14B': 14_770_033_664,
  'gemma-2-27b': 27_227_128_320,
  'Qwen2.5-32B': 32_763_876_352,
  'Llama-3.1-70B': 70_553_706_496,
}

test('shapes have the published numbers of parameters', () => {
  const found = knownModels().map(({ name, config }) => [name, parameterCount(config).all])
  assert.deepEqual(Object.fromEntries(found), PARAMETERS)
})

test('an adapter trains its factors, and changes what it is merged into', () => {
  const { config } = knownModels()[0]!
  const lora = { rank: 8, alpha: 16, rankStabilised: false, targets: ['q_proj', 'v_proj'], seed: 1 }
  const { all, trained, changed } = parameterCount(config, lora)
  // q is 576 × 576, v is 192 × 576, in 30 layers.
  assert.equal(trained, 30 * 8 * (576 + 576 + 192 + 576))
  assert.equal(changed, 30 * (576 * 576 + 192 * 576))
  assert.equal(all, PARAMETERS['SmolLM2-135M'])
})

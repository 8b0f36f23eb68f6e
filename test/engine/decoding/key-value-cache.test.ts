import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import { KeyValueCache } from '../../../engine/decoding/key-value-cache.ts'
import type { Feeds } from '../../../engine/runtime/session.ts'
import { parseModelConfig } from '../../../engine/weights/model-config.ts'

const [K, E] = [2, 8]
const CONFIG = parseModelConfig('config.json', {
  model_type: 'llama',
  hidden_size: 16,
  intermediate_size: 16,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  num_key_value_heads: K,
  head_dim: E,
  vocab_size: 9,
  max_position_embeddings: 999,
})

/** What a pass of `rows` rows and `tokens` tokens made: every element says where it belongs. */
function made(rows: number, tokens: number, mark: number): Feeds {
  const tensor = (sign: number) => {
    const data = Float32Array.from({ length: rows * K * tokens * E }, (_, i) => sign * (mark + i))
    return new Tensor('float32', data, [rows, K, 1, tokens, E])
  }
  return { 'new_keys.0': tensor(1), 'new_values.0': tensor(-1) }
}

/** Element 0 of a row's tokens, [heads][tokens]. */
function read(cache: KeyValueCache, row: number, tokens: number, name = 'keys.0'): number[][] {
  const data = cache.prefix(row, tokens)[name]!.data as Float32Array
  const heads = Array.from({ length: K }, (_, head) => head)
  return heads.map(head => Array.from({ length: tokens }, (_, t) => data[(head * tokens + t) * E]!))
}

test('what is written is read back, also after growing and moving', () => {
  const cache = new KeyValueCache(CONFIG)
  cache.reserve(3, 200)
  cache.grow(3)
  assert.equal(cache.length, 64)
  cache.append(made(1, 3, 1000), [0], [0])
  cache.append(made(1, 2, 2000), [2], [0])
  cache.append(made(2, 1, 5000), [0, 2], [3, 2])
  const row0 = [
    [1000, 1008, 1016, 5000],
    [1024, 1032, 1040, 5008],
  ]
  const row2 = [
    [2000, 2008, 5016],
    [2016, 2024, 5024],
  ]
  const check = () => {
    assert.deepEqual(read(cache, 0, 4), row0)
    assert.deepEqual(read(cache, 2, 3), row2)
    const negative = row2.map(head => head.map(value => -value))
    assert.deepEqual(read(cache, 2, 3, 'values.0'), negative)
  }
  check()
  for (const length of [65, 129, 200]) {
    cache.grow(length)
    check()
  }
  assert.equal(cache.length, 256)
  assert.deepEqual(cache.rows(2)['keys.0']!.dims, [2, K, 1, 256, E])
  cache.move(2, 1)
  assert.deepEqual(read(cache, 1, 3), row2)
  check()
})

test('an empty prefix is an empty tensor', () => {
  const cache = new KeyValueCache(CONFIG)
  cache.reserve(1, 10)
  cache.grow(1)
  assert.deepEqual(cache.prefix(0, 0)['values.0']!.dims, [1, K, 1, 0, E])
})

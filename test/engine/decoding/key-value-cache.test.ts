import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import { BLOCK, cacheLength, KeyValueCache, PLACES } from '../../../engine/decoding/key-value-cache.ts'
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
    return new Tensor('float32', data, [rows, K, tokens, E])
  }
  return { 'new_keys.0': tensor(1), 'new_values.0': tensor(-1) }
}

/** Element 0 of a row's tokens, [heads][tokens]. */
function read(cache: KeyValueCache, row: number, tokens: number, name = 'keys.0'): number[][] {
  return firstElements(cache.prefixes([row], tokens, 1)[name]!, 0, tokens)
}

function firstElements({ data, dims }: Tensor, row: number, tokens: number): number[][] {
  const values = data as Float32Array
  const heads = Array.from({ length: K }, (_, head) => (row * K + head) * dims[2]!)
  return heads.map(start => Array.from({ length: tokens }, (_, t) => values[(start + t) * E]!))
}

test('what is written is read back, also when blocks are full and rows have moved', () => {
  const cache = new KeyValueCache(CONFIG)
  cache.reserve(3, 200)
  cache.append(made(1, 3, 1000), [0], [0], [3])
  cache.append(made(1, 2, 2000), [2], [0], [2])
  cache.append(made(2, 1, 5000), [0, 2], [3, 2], [1, 1])
  const row0 = [
    [1000, 1008, 1016, 5000],
    [1024, 1032, 1040, 5008],
  ]
  const row2 = [
    [2000, 2008, 5016],
    [2016, 2024, 5024],
  ]
  const check = () => {
    assert.deepEqual(
      read(cache, 0, 4).map(head => head.slice(0, 4)),
      row0,
    )
    assert.deepEqual(read(cache, 2, 3), row2)
    const negative = row2.map(head => head.map(value => -value))
    assert.deepEqual(read(cache, 2, 3, 'values.0'), negative)
  }
  check()
  assert.equal(cache.length, 0)
  // Row 1 fills four blocks, then eight more at once.
  cache.append(made(1, 70, 10_000), [1], [0], [70])
  // 128 at least, and with the block that is being filled a multiple of 64.
  assert.equal(cache.length, 160)
  check()
  cache.append(made(1, 130, 20_000), [1], [70], [130])
  assert.equal(cache.length, 224)
  check()
  const row1 = Array.from({ length: K }, (_, head) =>
    Array.from({ length: 200 }, (_, t) =>
      t < 70 ? 10_000 + (head * 70 + t) * E : 20_000 + (head * 130 + t - 70) * E,
    ),
  )
  assert.deepEqual(read(cache, 1, 200), row1)
  const feeds = cache.rows(2)
  assert.deepEqual(feeds['keys.0']!.dims, [2, K, 224, E])
  assert.deepEqual(feeds['block_keys.0']!.dims, [2, K, PLACES, E])
  assert.deepEqual(
    firstElements(feeds['keys.0']!, 1, 192),
    row1.map(head => head.slice(0, 192)),
  )
  assert.deepEqual(
    firstElements(feeds['block_keys.0']!, 1, 8),
    row1.map(head => head.slice(192)),
  )
  cache.move(1, 0)
  assert.deepEqual(read(cache, 0, 200), row1)
  cache.move(2, 1)
  assert.deepEqual(read(cache, 1, 3), row2)
})

test('of a pass only the tokens that count are kept', () => {
  const cache = new KeyValueCache(CONFIG)
  cache.reserve(2, 200)
  cache.append(made(1, 14, 1000), [0], [0], [14])
  cache.append(made(1, 5, 2000), [1], [0], [5])
  const before = firstElements(cache.rows(2)['block_keys.0']!, 0, PLACES)
  // Row 0 could take no more than two of these, and takes one; row 1 takes them all.
  cache.append(made(2, 4, 3000), [0, 1], [14, 5], [1, 4])
  const after = firstElements(cache.rows(2)['block_keys.0']!, 0, PLACES)
  before.forEach((head, k) => {
    assert.deepEqual(after[k]!.toSpliced(14, 1), head.toSpliced(14, 1))
    assert.equal(after[k]![14], 3000 + k * 4 * E)
  })
  assert.deepEqual(read(cache, 1, 9)[1]!.slice(5), [3096, 3104, 3112, 3120])
})

test('the cache grows in steps that leave sums as they are', () => {
  for (let tokens = BLOCK; tokens < 1000; tokens += BLOCK) {
    const length = cacheLength(tokens)
    assert(length >= Math.max(128, tokens) && length < Math.max(128, tokens) + 64)
    assert.equal((length + PLACES) % 64, 0)
  }
  assert.equal(cacheLength(0), 0)
})

test('an empty prefix is an empty tensor', () => {
  const cache = new KeyValueCache(CONFIG)
  cache.reserve(1, 10)
  const feeds = cache.prefixes([0], 0, 7)
  assert.deepEqual(feeds['values.0']!.dims, [1, K, 0, E])
  assert.deepEqual(feeds['block_values.0']!.dims, [1, K, 7, E])
})

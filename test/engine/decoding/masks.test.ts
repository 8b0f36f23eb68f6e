import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ModelConfig } from '../../../engine/architectures/config.ts'
import { maskFeeds, type PassExtent } from '../../../engine/decoding/masks.ts'
import { INPUT } from '../../../engine/decoding/names.ts'

const plain = {} as ModelConfig
const windowed = { slidingWindow: { tokens: 3, layers: [true, false] } } as unknown as ModelConfig

/** Rows of a mask as text: 1 where it lets through. */
function rows(config: ModelConfig, extent: PassExtent, name: string): string[] {
  const { data, dims } = maskFeeds(config, extent)[name]!
  const width = dims.at(-1)!
  const bits = Array.from(data as Float32Array, value => {
    assert(value === 0 || value === Number.NEGATIVE_INFINITY)
    return value === 0 ? '1' : '0'
  }).join('')
  return Array.from({ length: bits.length / width }, (_, row) => bits.slice(row * width, (row + 1) * width))
}

test('a step looks at the cached tokens of each row, in a window at the last of them', () => {
  const step = { firsts: [1, 5, 0], tokens: 1, cached: 6 }
  assert.deepEqual(rows(plain, step, INPUT.cacheMask), ['100000', '111110', '000000'])
  assert.deepEqual(rows(windowed, step, INPUT.cacheMask), ['100000', '111110', '000000'])
  // Itself and two before it.
  assert.deepEqual(rows(windowed, step, INPUT.windowCacheMask), ['100000', '000110', '000000'])
  assert.deepEqual(rows(windowed, step, INPUT.windowPassMask), ['1'])
  assert.deepEqual(maskFeeds(windowed, step)[INPUT.windowCacheMask]!.dims, [3, 1, 1, 1, 6])
  assert.deepEqual(maskFeeds(plain, step)[INPUT.cacheMask]!.dims, [3, 1, 1, 1, 6])
})

test('reading a part of a prompt looks at what is before it and at itself, causally', () => {
  const read = { firsts: [4], tokens: 4, cached: 4 }
  assert.deepEqual(rows(plain, read, INPUT.cacheMask), ['1111'])
  assert.deepEqual(rows(plain, read, INPUT.passMask), ['1000', '1100', '1110', '1111'])
  assert.deepEqual(rows(windowed, read, INPUT.windowCacheMask), ['0011', '0001', '0000', '0000'])
  assert.deepEqual(rows(windowed, read, INPUT.windowPassMask), ['1000', '1100', '1110', '0111'])
  assert.deepEqual(maskFeeds(windowed, read)[INPUT.windowCacheMask]!.dims, [1, 1, 1, 4, 4])
})

test('models without windows are fed no masks of windows', () => {
  const feeds = maskFeeds(plain, { firsts: [0], tokens: 2, cached: 0 })
  assert.deepEqual(Object.keys(feeds).sort(), [INPUT.cacheMask, INPUT.passMask])
})

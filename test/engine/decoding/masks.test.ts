import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ModelConfig } from '../../../engine/architectures/config.ts'
import { maskFeeds, type PassExtent } from '../../../engine/decoding/masks.ts'
import { INPUT } from '../../../engine/decoding/names.ts'

const plain = { keyValueHeads: 2 } as ModelConfig
const windowed = { ...plain, slidingWindow: { tokens: 3, layers: [true, false] } } as unknown as ModelConfig

/** Rows of a mask as text, the block and what is cached: 1 where it lets through. */
function rows(config: ModelConfig, extent: PassExtent, name: string): string[] {
  const { data, dims } = maskFeeds(config, extent)[name]!
  const width = dims.at(-1)!
  const bits = Array.from(data as Float32Array, value => {
    assert(value === 0 || value === Number.NEGATIVE_INFINITY)
    return value === 0 ? '1' : '0'
  }).join('')
  return Array.from({ length: bits.length / width }, (_, row) => {
    const bitsOf = bits.slice(row * width, (row + 1) * width)
    return `${bitsOf.slice(0, extent.places)} ${bitsOf.slice(extent.places)}`
  })
}

/** Blocks of 4 places, and 2 beyond. */
const step = { firsts: [1, 6, 11], starts: [0, 4, 8], tokens: 1, cached: 8, places: 6, spare: 0 }

test('a step looks at the block of each row up to the token, and at its full blocks, in a window at the last of them', () => {
  assert.deepEqual(rows(plain, step, INPUT.mask), ['110000 00000000', '111000 11110000', '111100 11111111'])
  assert.deepEqual(rows(windowed, step, INPUT.mask), rows(plain, step, INPUT.mask))
  // Itself and two before it.
  assert.deepEqual(rows(windowed, step, INPUT.windowMask), [
    '110000 00000000',
    '111000 00000000',
    '011100 00000000',
  ])
  const early = { ...step, firsts: [0, 5, 8] }
  assert.deepEqual(rows(windowed, early, INPUT.windowMask), [
    '100000 00000000',
    '110000 00010000',
    '100000 00000011',
  ])
  assert.deepEqual(maskFeeds(windowed, step)[INPUT.windowMask]!.dims, [3, 1, 1, 14])
  assert.deepEqual(maskFeeds(plain, step)[INPUT.mask]!.dims, [3, 1, 1, 14])
  assert.deepEqual(maskFeeds(plain, step)[INPUT.spans]!.data, BigInt64Array.of(6n, 8n))
})

test('each token of a row looks at one more, and those beyond the block at least at themselves', () => {
  const several = { ...step, tokens: 3 }
  const blocks = ['110000', '111000', '111100', '111000', '111100', '111110', '111100', '111110', '111111']
  assert.deepEqual(
    rows(plain, several, INPUT.mask).map(row => row.slice(0, 6)),
    blocks,
  )
  const { data, dims } = maskFeeds(plain, several)[INPUT.places]!
  assert.deepEqual(dims, [3, 2, 3, 3])
  const places = Array.from(data as BigInt64Array, Number)
  // Row 1, head 0: its places 2, 3 and 4.
  assert.deepEqual(places.slice(18, 27), [1, 0, 2, 1, 0, 3, 1, 0, 4])
})

test('reading a part of a prompt looks at what is before it and at itself, causally', () => {
  const read = { firsts: [4], starts: [4], tokens: 4, cached: 4, places: 4, spare: 0 }
  assert.deepEqual(rows(plain, read, INPUT.mask), ['1000 1111', '1100 1111', '1110 1111', '1111 1111'])
  assert.deepEqual(rows(windowed, read, INPUT.windowMask), [
    '1000 0011',
    '1100 0001',
    '1110 0000',
    '0111 0000',
  ])
  assert.deepEqual(maskFeeds(windowed, read)[INPUT.windowMask]!.dims, [1, 1, 4, 8])
})

test('rows that fill up look at something, and no key of theirs is placed', () => {
  const filled = { ...step, firsts: [1], starts: [0], tokens: 2, spare: 1 }
  assert.deepEqual(rows(windowed, filled, INPUT.windowMask), [
    '110000 00000000',
    '111000 00000000',
    '100000 00000000',
    '100000 00000000',
  ])
  assert.deepEqual(maskFeeds(plain, filled)[INPUT.mask]!.dims, [2, 1, 2, 14])
  assert.deepEqual(maskFeeds(plain, filled)[INPUT.places]!.dims, [1, 2, 2, 3])
})

test('models without windows are fed no masks of windows', () => {
  const feeds = maskFeeds(plain, { firsts: [0], starts: [0], tokens: 2, cached: 0, places: 2, spare: 0 })
  assert.deepEqual(Object.keys(feeds).sort(), [INPUT.mask, INPUT.places, INPUT.spans])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encode, rounded } from '../../../engine/scoring/encode.ts'

test('bytes are little-endian and rounded to the dtype', () => {
  const values = Float32Array.of(9, 1, -2.00390625).subarray(1)
  assert.deepEqual([...encode(values, 'f32')], [0, 0, 0x80, 0x3f, 0, 0x40, 0, 0xc0])
  assert.deepEqual([...encode(values, 'f16')], [0, 0x3c, 0x02, 0xc0])
  assert.deepEqual([...encode(values, 'bf16')], [0x80, 0x3f, 0, 0xc0])
  assert.deepEqual([...rounded(values, 'bf16')], [1, -2])
  assert.deepEqual([...rounded(values, 'f32')], [...values])
})

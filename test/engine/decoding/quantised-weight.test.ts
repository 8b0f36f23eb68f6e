import assert from 'node:assert/strict'
import { test } from 'node:test'
import { quantise } from '../../../engine/decoding/quantised-weight.ts'

test('each 64 inputs of an output share a scale; the greatest is 127 steps from 0', () => {
  // 70 inputs: a block of 64 and one of 6.
  const data = Float32Array.from({ length: 140 }, (_, i) => (i < 70 ? i / 64 : i % 2 === 0 ? -254 : 127))
  const { dims, values, scales } = quantise(data, [2, 70])
  assert.deepEqual(dims, [2, 70])
  assert.equal(values.length, 2 * 2 * 64)
  assert.deepEqual(Array.from(scales), [63 / 64 / 127, 69 / 64 / 127, 2, 2].map(Math.fround))
  const back = (row: number, i: number) => {
    const block = row * 2 + (i >> 6)
    return (values[block * 64 + (i % 64)]! - 128) * scales[block]!
  }
  data.forEach((value, at) => {
    const [row, i] = [Math.floor(at / 70), at % 70]
    assert(
      Math.abs(back(row, i) - value) <= scales[row * 2 + (i >> 6)]! / 2 + 1e-6,
      `${value} ${back(row, i)}`,
    )
  })
  assert.equal(back(1, 0), -254)
  // What lies beyond the inputs stands for 0.
  assert.deepEqual(Array.from(values.subarray(64 + 6, 128)), new Array(58).fill(128))
})

test('a block of zeros stays one', () => {
  const { values, scales } = quantise(new Float32Array(64), [1, 64])
  assert(values.every(value => value === 128))
  assert.equal(scales[0], 0)
})

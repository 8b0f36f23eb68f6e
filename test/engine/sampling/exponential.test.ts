import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exponential } from '../../../engine/sampling/exponential.ts'

test('equals Math.exp to a few units in the last place, down to the smallest normal numbers', () => {
  for (const step of [0.37, 0.0101, 1e-6]) {
    for (let i = 0; i < 5000; i++) {
      const x = -i * step
      if (x < -708) break
      const expected = Math.exp(x)
      assert.ok(Math.abs(exponential(x) - expected) <= 8e-16 * expected, `exp(${x}) is ${expected}`)
    }
  }
})

test('0 gives exactly 1, what is too small exactly 0', () => {
  assert.equal(exponential(0), 1)
  assert.equal(exponential(-0), 1)
  for (const x of [-708.1, -1e9, Number.NEGATIVE_INFINITY]) assert.equal(exponential(x), 0)
  assert.ok(exponential(-708) > 0)
  assert.ok(Number.isNaN(exponential(Number.NaN)))
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exponential } from '../../../engine/sampling/exponential.ts'
import { Exponentials } from '../../../engine/sampling/exponentials.ts'

/** Greatest 5; some far below it, two that count as 0, an odd number of them. */
function logits(count: number): Float32Array {
  const all = Float32Array.from(
    { length: count },
    (_, i) => 5 - ((i * 7919) % 1013) / (i % 3 === 0 ? 1.37 : 97),
  )
  all[3] = 5
  all[4] = Number.NEGATIVE_INFINITY
  all[7] = -704
  return all
}

test('gives the bits of one exponential after the other, and of their sum in order', () => {
  for (const count of [8, 9, 1001]) {
    const exponentials = new Exponentials(count)
    for (const rate of [1, 1 / 0.7, 0.3]) {
      const given = logits(count)
      const sum = exponentials.of(given, 5, rate)
      const expected = Float64Array.from(given, logit => exponential((logit - 5) * rate))
      assert.deepEqual(exponentials.weights, expected)
      assert.equal(
        sum,
        expected.reduce((total, weight) => total + weight, 0),
      )
      assert.equal(exponentials.weights[3], 1)
      assert.equal(exponentials.weights[4], 0)
    }
  }
})

test('what is not a number shows in the sum', () => {
  const given = logits(9)
  given[8] = Number.NaN
  assert(Number.isNaN(new Exponentials(9).of(given, 5, 1)))
})

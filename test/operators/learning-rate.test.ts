import assert from 'node:assert/strict'
import { test } from 'node:test'
import { learningRate } from '../../operators/learning-rate.ts'

const peak = { learningRate: 8, warmup: 4 }

test('the warm-up rises linearly and the first update is not wasted on a rate of 0', () => {
  const options = { ...peak, schedule: 'constant' as const, totalUpdates: null }
  assert.deepEqual(
    [0, 1, 2, 3, 4, 1000].map(step => learningRate(step, options)),
    [2, 4, 6, 8, 8, 8],
  )
})

test('linear and cosine fall from the peak to 0 at the total', () => {
  const linear = { ...peak, schedule: 'linear' as const, totalUpdates: 12 }
  assert.deepEqual(
    [4, 8, 12, 13].map(step => learningRate(step, linear)),
    [8, 4, 0, 0],
  )
  const cosine = { ...linear, schedule: 'cosine' as const }
  assert.deepEqual(
    [4, 8, 12].map(step => Math.round(learningRate(step, cosine) * 1e9) / 1e9),
    [8, 4, 0],
  )
})

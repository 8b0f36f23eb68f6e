import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { learningRate, type ScheduleOptions } from '../../operators/learning-rate.ts'

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

test("after the warm-up the rates are those of transformers' schedules, in it those of their next step", async () => {
  const file = new URL('../golden/schedules.json', import.meta.url)
  const cases: (Omit<ScheduleOptions, 'learningRate'> & { factors: number[] })[] = JSON.parse(
    await readFile(file, 'utf8'),
  )
  assert.equal(cases.length, 12)
  for (const { factors, ...options } of cases) {
    const { schedule, warmup, totalUpdates } = options
    for (let step = 0; step < factors.length; step++) {
      const expected = factors[step < warmup ? step + 1 : step]!
      const found = learningRate(step, { ...options, learningRate: 2 })
      const what = `${schedule}, warm-up ${warmup} of ${totalUpdates}, step ${step}`
      assert.ok(Math.abs(found - 2 * expected) < 1e-12, `${what}: ${found}, expected ${2 * expected}`)
    }
  }
})

test('a warm-up below 1 is a part of all updates, rounded up', () => {
  const options = { schedule: 'linear' as const, learningRate: 1, totalUpdates: 15 }
  for (const step of [0, 1, 2, 9]) {
    assert.equal(
      learningRate(step, { ...options, warmup: 0.1 }),
      learningRate(step, { ...options, warmup: 2 }),
    )
  }
})

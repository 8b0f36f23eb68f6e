import assert from 'node:assert/strict'
import { test } from 'node:test'
import { macroAverage } from '../../operators/macro-average.ts'

test('the macro average weighs categories alike, however many answers they have', () => {
  const answers = [
    { category: 'a', score: 1 },
    { category: 'a', score: 0.5 },
    { category: 'a', score: 0 },
    { category: 'b', score: 1 },
  ]
  const { macro, categories, scored } = macroAverage(answers)
  assert.deepEqual(categories, { a: 0.5, b: 1 })
  assert.equal(macro, 0.75)
  assert.equal(scored, 4)
})

test('answers without a score are left out and counted', () => {
  const { macro, unscored } = macroAverage([
    { category: 'a', score: 0.5 },
    { category: 'a', score: null },
  ])
  assert.equal(macro, 0.5)
  assert.equal(unscored, 1)
})

test('no score at all gives null, not 0', () => {
  assert.equal(macroAverage([{ category: 'a', score: null }]).macro, null)
})

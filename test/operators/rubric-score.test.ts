import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rubricScore } from '../../operators/rubric-score.ts'

const verdicts = (...scores: (number | null)[]) =>
  scores.map((score, i) => ({
    aspect: `a${i}`,
    score,
    unscored: score === null ? 'the judge did not answer' : null,
  }))

test('s(y, E) is the sum of the verdicts over twice the number of aspects', () => {
  assert.equal(rubricScore(verdicts(2, 1, 0)), 3 / 6)
  assert.equal(rubricScore(verdicts(2, 2)), 1)
  assert.equal(rubricScore(verdicts(0)), 0)
})

test('a missing verdict is neither 0 nor a pass', () => {
  assert.equal(rubricScore(verdicts(2, null, 2)), null)
  assert.equal(rubricScore([]), null)
})

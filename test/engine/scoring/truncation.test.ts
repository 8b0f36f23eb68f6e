import assert from 'node:assert/strict'
import { test } from 'node:test'
import { truncatedKl } from '../../../engine/scoring/truncation.ts'

const logs = (...probabilities: number[]) => Float32Array.from(probabilities, Math.log)
const close = (found: number, expected: number) =>
  assert.ok(Math.abs(found - expected) < 1e-6, `${found} ${expected}`)

test('the tokens beyond the k are one bucket', () => {
  // Teacher (0.6, 0.3, 0.1), student (0.2, 0.3, 0.5), k = 1: buckets 0.6 and 0.4 against 0.2 and 0.8.
  const kl = truncatedKl({ teacherLogits: logs(0.6), teacherLse: 0, studentLogits: logs(0.2), studentLse: 0 })
  close(kl, 0.6 * Math.log(0.6 / 0.2) + 0.4 * Math.log(0.4 / 0.8))
})

test('with every token it is the whole KL, and log-sum-exps shift nothing', () => {
  const teacherLogits = logs(0.6, 0.3, 0.1).map(logit => logit + 5)
  const studentLogits = logs(0.2, 0.3, 0.5).map(logit => logit - 2)
  const kl = truncatedKl({ teacherLogits, teacherLse: 5, studentLogits, studentLse: -2 })
  close(kl, 0.6 * Math.log(3) + 0.1 * Math.log(0.1 / 0.5))
})

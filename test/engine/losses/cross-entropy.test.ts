import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { input } from '../../../engine/graph/input.ts'
import { crossEntropy } from '../../../engine/losses/cross-entropy.ts'
import { ids, logitsOf, runLoss, softmax } from './loss-graph.ts'

describe('cross-entropy', () => {
  it('is −log p of the observed token, with the gradient p − onehot', async () => {
    const logits = [logitsOf([0.2, 0.5, 0.3], 7), [1, -2, 0.5]]
    const { loss, gradient } = await runLoss(
      student => crossEntropy(student, input('observed', ['N', 1], 'int64')),
      logits,
      {
        observed: ids([[1], [0]]),
      },
    )
    const expected = [-Math.log(0.5), -Math.log(softmax(logits[1]!)[0]!)]
    for (const [token, value] of expected.entries()) assert(Math.abs(loss[token]! - value) < 1e-6)
    const slopes = [0.2, -0.5, 0.3, ...softmax(logits[1]!).map((p, id) => p - (id === 0 ? 1 : 0))]
    for (const [index, value] of slopes.entries()) assert(Math.abs(gradient[index]! - value) < 1e-6)
  })
})

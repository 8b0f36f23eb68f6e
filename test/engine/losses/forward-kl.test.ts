import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { input } from '../../../engine/graph/input.ts'
import type { Value } from '../../../engine/graph/value.ts'
import { forwardKl } from '../../../engine/losses/forward-kl.ts'
import { checkGradient, uniform } from '../graph/finite-differences.ts'
import { kl, logitsOf, runLoss, softmax } from './loss-graph.ts'

const dense = (student: Value) => forwardKl(student, input('teacher', student.shape))
const run = (student: readonly (readonly number[])[], teacher: readonly (readonly number[])[]) =>
  runLoss(dense, student, { teacher })
const near = (got: number, expected: number, tolerance = 1e-6) =>
  assert(Math.abs(got - expected) <= tolerance, `${got}, expected ${expected}`)

describe('forward KL', () => {
  it('has the direction KL(teacher ‖ student), by hand on asymmetric distributions', async () => {
    const teacher = [0.5, 0.5, 1e-9]
    const student = [0.9, 0.05, 0.05]
    // ½ ln(0.5/0.9) + ½ ln(0.5/0.05) = −0.2938933 + 1.1512925
    const { loss } = await run([logitsOf(student)], [logitsOf(teacher, 3)])
    near(loss[0]!, 0.8573992)
    near(loss[0]!, kl(teacher, student))
    // The other direction is another number: 0.9 ln 1.8 + 0.05 ln 0.1 + 0.05 ln 5e7 = 1.3002…
    assert(Math.abs(kl(student, teacher) - loss[0]!) > 0.4)
  })

  it('weighs by the teacher: a token it never says costs nothing, one the student never says costs much', async () => {
    const { loss } = await run(
      [logitsOf([0.5, 0.5]), logitsOf([1 - 1e-6, 1e-6])],
      [logitsOf([1 - 1e-6, 1e-6]), logitsOf([0.5, 0.5])],
    )
    near(loss[0]!, Math.log(2), 2e-5)
    assert(loss[1]! > 6)
  })

  it('has the gradient p_S − p_T at the logits', async () => {
    const student = [[0.3, -1, 2, 0.1]]
    const teacher = [[1, 1, -0.5, 0]]
    const { gradient } = await run(student, teacher)
    const [s, t] = [softmax(student[0]!), softmax(teacher[0]!)]
    for (const [index, value] of gradient.entries()) near(value, s[index]! - t[index]!)
  })

  it('agrees with finite differences', () =>
    checkGradient(({ student, teacher }) => forwardKl(student!, teacher!), {
      student: { shape: ['N', 5], dims: [3, 5] },
      teacher: { shape: ['N', 5], dims: [3, 5], constant: true },
    }))

  it('is never negative, and 0 for equal logits even when they are large', async () => {
    const random = uniform(3)
    const rows = Array.from({ length: 64 }, () => Array.from({ length: 200 }, () => 30 * random()))
    const nearby = rows.map(row => row.map(value => value + 1e-4 * random()))
    for (const value of (await run(rows, nearby)).loss) assert(value >= 0 && value < 1e-5)
    for (const value of (await run(rows, rows)).loss) assert.equal(value, 0)
  })

  it('is finite and exact with logits beyond the range of exp', async () => {
    const { loss, gradient } = await run([[1000, 0, -1000]], [[999, 1000, -1000]])
    // p_T is (σ(−1), σ(1), 0), log p_S is (0, −1000, −2000).
    const [a, b] = softmax([999, 1000])
    near(loss[0]!, a! * Math.log(a!) + b! * (Math.log(b!) + 1000), 1e-3)
    assert(gradient.every(Number.isFinite))
  })

  it('the gradient changes when the teacher changes', async () => {
    const student = [[0.3, -1, 2, 0.1]]
    const one = await run(student, [[1, 0, 0, 0]])
    const other = await run(student, [[0, 1, 0, 0]])
    assert.notDeepEqual(one.gradient, other.gradient)
  })
})

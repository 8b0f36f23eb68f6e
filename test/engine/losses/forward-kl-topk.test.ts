import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { input } from '../../../engine/graph/input.ts'
import type { Value } from '../../../engine/graph/value.ts'
import { forwardKl } from '../../../engine/losses/forward-kl.ts'
import { forwardKlTopK } from '../../../engine/losses/forward-kl-topk.ts'
import { uniform } from '../graph/finite-differences.ts'
import { ids, kl, runLoss, softmax } from './loss-graph.ts'

const V = 12
const random = uniform(5)
const draw = () => Array.from({ length: 4 }, () => Array.from({ length: V }, () => 2 * random()))
const student = draw()
const teacher = draw()

const topkLoss = (logits: Value) =>
  forwardKlTopK(logits, {
    logits: input('top', ['N', 'k']),
    ids: input('ids', ['N', 'k'], 'int64'),
    lse: input('lse', ['N', 1]),
  })

function orders(k: number): number[][] {
  return teacher.map(row => [...row.keys()].sort((a, b) => row[b]! - row[a]!).slice(0, k))
}

function topk(k: number, logits = student) {
  const order = orders(k)
  return runLoss(topkLoss, logits, {
    top: order.map((row, token) => row.map(id => teacher[token]![id]!)),
    ids: ids(order),
    lse: teacher.map(row => [Math.log(row.reduce((sum, value) => sum + Math.exp(value), 0))]),
  })
}

/** The formula of the file's head, in f64. */
function merged(k: number, logits = student): number[] {
  return orders(k).map((order, token) => {
    const split = (row: readonly number[]) => {
      const p = softmax(row)
      const known = order.map(id => p[id]!)
      const rest = 1 - known.reduce((sum, value) => sum + value, 0)
      return k === V ? known : [...known, rest]
    }
    return kl(split(teacher[token]!), split(logits[token]!))
  })
}

function assertNear(got: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number): void {
  for (let i = 0; i < expected.length; i++) {
    assert(Math.abs(got[i]! - expected[i]!) <= tolerance, `[${i}] is ${got[i]}, expected ${expected[i]}`)
  }
}

describe('forward KL against the top k', () => {
  for (const k of [1, 3, V - 1, V]) {
    it(`k = ${k}: value by the merged distributions, gradient by differences`, async () => {
      const { loss, gradient } = await topk(k)
      assertNear(loss, merged(k), 2e-6)
      const step = 1e-5
      const numeric = student.flatMap((row, token) =>
        row.map((_, id) => {
          const shifted = (by: number) =>
            merged(
              k,
              student.map((r, t) => (t === token ? r.map((x, i) => (i === id ? x + by : x)) : r)),
            )[token]!
          return (shifted(step) - shifted(-step)) / (2 * step)
        }),
      )
      assertNear(gradient, numeric, 2e-6)
    })
  }

  it('k = V equals the whole KL, gradients too', async () => {
    const whole = await runLoss(logits => forwardKl(logits, input('teacher', logits.shape)), student, {
      teacher,
    })
    const top = await topk(V)
    assertNear(top.loss, whole.loss, 2e-6)
    assertNear(top.gradient, whole.gradient, 2e-6)
  })

  it('is a lower bound of the whole KL that grows with k', async () => {
    let previous: Float32Array = new Float32Array(4)
    for (let k = 1; k <= V; k++) {
      const { loss } = await topk(k)
      for (const [token, value] of loss.entries()) assert(value >= previous[token]! - 1e-6)
      previous = loss
    }
  })

  it('is finite when either side puts all its mass on the known tokens', async () => {
    const sharp = student.map((_, token) =>
      Array.from({ length: V }, (_, id) => (id === orders(1)[token]![0] ? 200 : 0)),
    )
    const { loss, gradient } = await topk(1, sharp)
    assert(loss.every(Number.isFinite) && gradient.every(Number.isFinite))
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type AdamwFactors, AdamwKernel } from '../../../engine/optimiser/adamw-kernel.ts'

const f = Math.fround
const kernel = new AdamwKernel()
const factors: AdamwFactors = {
  scale: 0.37,
  beta1: 0.9,
  beta2: 0.999,
  rate: 1e-3,
  correction: 3.1,
  epsilon: 1e-8,
  shrink: 0.9999,
}

/** Numbers of either sign over many magnitudes. */
function numbers(length: number, salt: number): Float32Array {
  let state = salt
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return (state / 2 ** 31 - 1) * 10 ** -(state % 9)
  })
}

/** The same in JavaScript: every operation is rounded to f32. */
function expected(w: Float32Array, g: Float32Array, m: Float32Array, v: Float32Array) {
  const { scale, beta1, beta2, rate, correction, epsilon, shrink } = factors
  const settle = (x: number, grain: number) => f(f(x + f(grain)) - f(grain))
  const [next, mean, square] = [w.slice(), m.slice(), v.slice()]
  for (let i = 0; i < w.length; i++) {
    const s = f(g[i]! * f(scale))
    mean[i] = settle(f(f(f(beta1) * m[i]!) + f(f(1 - beta1) * s)), 1e-20)
    square[i] = settle(f(f(f(beta2) * v[i]!) + f(f(f(1 - beta2) * s) * s)), 1e-30)
    const root = f(f(f(Math.sqrt(square[i]!)) * f(correction)) + f(epsilon))
    next[i] = f(f(w[i]! * f(shrink)) - f(f(f(rate) * mean[i]!) / root))
  }
  return { next, mean, square }
}

describe('AdamW kernel', () => {
  for (const length of [1, 3, 4, 4095, 4096, 4097, 9001]) {
    it(`has the bits of the same operations in JavaScript, over ${length} elements`, () => {
      const [w, g, m] = [numbers(length, 1), numbers(length, 2), numbers(length, 3)]
      const v = numbers(length, 4).map(Math.abs)
      const should = expected(w, g, m, v)
      const [before, slopes, next] = [w.slice(), g.slice(), new Float32Array(length)]
      kernel.step(w, g, m, v, next, factors)
      assert.deepEqual(next, should.next)
      assert.deepEqual(m, should.mean)
      assert.deepEqual(v, should.square)
      assert.deepEqual(w, before)
      assert.deepEqual(g, slopes)
    })
  }

  it('lets no moment fade into the subnormal numbers', () => {
    const w = Float32Array.of(1, -1, 1)
    const g = new Float32Array(3)
    const moments = Float32Array.of(1e-3, -1e-3, 1e-5)
    const squares = Float32Array.of(1e-6, 1e-6, 1e-12)
    for (let step = 0; step < 2000; step++) kernel.step(w, g, moments, squares, w, factors)
    for (const value of [...moments, ...squares]) assert.ok(value === 0 || Math.abs(value) > 1.2e-38)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import { adamw, initialState } from '../../../engine/optimiser/adamw.ts'
import { globalNorm } from '../../../engine/optimiser/global-norm.ts'

const options = { learningRate: 0.1, betas: [0.9, 0.99], epsilon: 1e-8, weightDecay: 0.5 } as const

function model() {
  return new Map([
    ['matrix', new Tensor('float32', Float32Array.of(1, -2), [1, 2])],
    ['norm', new Tensor('float32', Float32Array.of(1, -2), [2])],
  ])
}

function near(got: ArrayLike<number>, expected: readonly number[]): void {
  for (const [index, value] of expected.entries()) {
    assert(Math.abs(got[index]! - value) < 1e-6, `${got[index]}, expected ${value}`)
  }
}

describe('AdamW', () => {
  it('the first step moves by the learning rate against the gradient; only matrices decay', () => {
    // Bias correction makes m / √v the sign of the gradient: w · (1 − 0.1 · 0.5) − 0.1 · sign.
    const weights = model()
    const updated = adamw(weights, () => Float32Array.of(3, -0.01), 1, initialState(weights), options)
    near(updated.get('matrix')!.data as Float32Array, [0.95 - 0.1, -1.9 + 0.1])
    near(updated.get('norm')!.data as Float32Array, [1 - 0.1, -2 + 0.1])
  })

  it('the second step by hand', () => {
    const weights = model()
    const state = initialState(weights)
    const first = adamw(weights, () => Float32Array.of(1, 1), 1, state, { ...options, weightDecay: 0 })
    const second = adamw(first, () => Float32Array.of(-2, 0), 1, state, { ...options, weightDecay: 0 })
    // m = 0.9·0.1 + 0.1·(−2) = −0.11 over 1 − 0.81; v = 0.99·0.01 + 0.01·4 = 0.0499 over 1 − 0.9801.
    const move = (0.1 * (-0.11 / 0.19)) / Math.sqrt(0.0499 / 0.0199)
    near(second.get('norm')!.data as Float32Array, [0.9 - move])
    assert.equal(state.steps, 2)
  })

  it('scales the gradients, and leaves the given weights as they were', () => {
    const weights = model()
    const [a, b] = [initialState(weights), initialState(weights)]
    const scaled = adamw(weights, () => Float32Array.of(4, 8), 0.25, a, options)
    const plain = adamw(weights, () => Float32Array.of(1, 2), 1, b, options)
    assert.deepEqual(scaled.get('matrix')!.data, plain.get('matrix')!.data)
    assert.deepEqual(a.v.get('matrix')!.data, b.v.get('matrix')!.data)
    assert.deepEqual(weights, model())
  })

  it('no gradient, no decay: nothing moves', () => {
    const weights = model()
    const updated = adamw(weights, () => new Float32Array(2), 1, initialState(weights), {
      ...options,
      weightDecay: 0,
    })
    assert.deepEqual(updated.get('matrix')!.data, weights.get('matrix')!.data)
  })
})

describe('globalNorm', () => {
  it('is the L2 norm over all arrays, without overflow of f32', () => {
    assert.equal(globalNorm([Float32Array.of(3), Float32Array.of(0, 4)]), 5)
    assert(Math.abs(globalNorm([Float32Array.of(3e30, 4e30)]) / 5e30 - 1) < 1e-6)
    assert.equal(globalNorm([]), 0)
  })
})

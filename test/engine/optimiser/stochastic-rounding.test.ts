import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import { adamw, initialState } from '../../../engine/optimiser/adamw.ts'
import { AdamwKernel } from '../../../engine/optimiser/adamw-kernel.ts'
import { roundingKey } from '../../../engine/optimiser/stochastic-rounding.ts'
import { narrowBf16, widenBf16 } from '../../../engine/weights/half.ts'

const N = 9001
const mean = (values: ArrayLike<number>) =>
  Array.from(values).reduce((sum, value) => sum + value, 0) / values.length

/** What the kernel does, in JavaScript: random bits are added below those that stay. */
function round(a: Float32Array, b: Float32Array, key: number, first = 0) {
  const words = [a, b].map(({ buffer, byteOffset, length }) => new Uint32Array(buffer, byteOffset, length))
  const rounded = [new Uint16Array(a.length), new Uint16Array(b.length)] as const
  for (let i = 0; i < a.length; i++) {
    let x = key ^ (first + i)
    x = Math.imul(x ^ (x >>> 16), 0x7feb352d)
    x = Math.imul(x ^ (x >>> 15), 0x846ca68b)
    x ^= x >>> 16
    rounded[0][i] = (words[0]![i]! + (x & 0xffff)) >>> 16
    rounded[1][i] = (words[1]![i]! + (x >>> 16)) >>> 16
  }
  return [widenBf16(rounded[0]), widenBf16(rounded[1])] as const
}

describe('stochastic rounding', () => {
  it('gives one of the two neighbours, the nearer one more often: the mean is the number', () => {
    // The neighbours of 1 + 1/512 in bf16 are 1 and 1 + 1/128: a quarter goes up.
    const [a, b] = round(new Float32Array(N).fill(1 + 1 / 512), new Float32Array(N).fill(-3.01), 7)
    assert.deepEqual(new Set(a), new Set([1, 1 + 1 / 128]))
    assert.deepEqual(new Set(b), new Set([-3, -3.015625]))
    // Six standard deviations.
    assert(Math.abs(mean(a) - (1 + 1 / 512)) < (6 * Math.sqrt(3 / 16)) / 128 / Math.sqrt(N))
    assert(Math.abs(mean(b) + 3.01) < (6 * 0.5) / 64 / Math.sqrt(N))
  })

  it('keeps numbers of bf16, and 0', () => {
    const exact = Float32Array.of(0, 1, -2.5, 2 ** -126, 1e30).map(
      value => widenBf16(narrowBf16(Float32Array.of(value)))[0]!,
    )
    assert.deepEqual(round(exact, exact, 3)[0], exact)
  })

  it('draws by key and place: the same again, also in pieces, another for another key', () => {
    const values = new Float32Array(N).fill(1.003)
    const [whole, other] = round(values, values, 7)
    assert.notDeepEqual(whole, other)
    assert.deepEqual(round(values, values, 7)[0], whole)
    assert.deepEqual(round(values.subarray(5000), values.subarray(5000), 7, 5000)[0], whole.subarray(5000))
    assert.notDeepEqual(round(values, values, 8)[0], whole)
    const keys = [roundingKey('a', 1), roundingKey('a', 2), roundingKey('b', 1)]
    assert.equal(new Set(keys).size, 3)
  })
})

describe('AdamW with moments in bf16', () => {
  it('a step has the moments of f32, rounded, and the weights of the unrounded ones', () => {
    const factors = {
      scale: 1,
      beta1: 0.9,
      beta2: 0.999,
      rate: 1e-3,
      correction: 3,
      epsilon: 1e-8,
      shrink: 1,
    }
    const w = Float32Array.from({ length: N }, (_, i) => Math.sin(i))
    const g = w.map(value => value * value - 0.4)
    const start = narrowBf16(w.map(value => value / 3))
    const squares = narrowBf16(w.map(Math.abs))
    const [m, v] = [start.slice(), squares.slice()]
    const [wideM, wideV] = [widenBf16(start), widenBf16(squares)]
    const [next, wideNext] = [new Float32Array(N), new Float32Array(N)]
    const kernel = new AdamwKernel()
    kernel.step(w, g.slice(), wideM, wideV, wideNext, factors)
    kernel.step(w, g.slice(), m, v, next, factors, 11)
    assert.deepEqual(next, wideNext)
    const [expectedM, expectedV] = round(wideM, wideV, 11)
    assert.deepEqual(widenBf16(m), expectedM)
    assert.deepEqual(widenBf16(v), expectedV)
  })

  it('the second moment fades as in f32, where rounding to the nearest would hold it', () => {
    const weights = new Map([['w', new Tensor('float32', new Float32Array(N), [N])]])
    const options = { learningRate: 1e-3, betas: [0.9, 0.999], epsilon: 1e-8, weightDecay: 0 } as const
    const state = initialState(weights, 'bf16')
    assert.equal((state.v.get('w')!.data as Uint16Array).byteLength, 2 * N)
    ;(state.v.get('w')!.data as Uint16Array).fill(0x3f80)
    for (let step = 0; step < 300; step++) adamw(weights, () => new Float32Array(N), 1, state, options)
    const v = widenBf16(state.v.get('w')!.data as Uint16Array)
    assert(Math.abs(mean(v) / 0.999 ** 300 - 1) < 0.01, `${mean(v)}`)
    assert.equal(widenBf16(narrowBf16(Float32Array.of(0.999)))[0], 1, 'to the nearest it would stay 1')
  })
})

import { describe, it } from 'node:test'
import type { ModelConfig } from '../../../../engine/architectures/config.ts'
import { norm } from '../../../../engine/architectures/norm.ts'
import { scalar } from '../../../../engine/graph/input.ts'
import { add } from '../../../../engine/graph/operations/add.ts'
import { type AttentionOptions, attention } from '../../../../engine/graph/operations/attention.ts'
import { exp } from '../../../../engine/graph/operations/exp.ts'
import { geglu } from '../../../../engine/graph/operations/geglu.ts'
import { linear } from '../../../../engine/graph/operations/linear.ts'
import { logSoftmax } from '../../../../engine/graph/operations/log-softmax.ts'
import { matmul } from '../../../../engine/graph/operations/matmul.ts'
import { multiply } from '../../../../engine/graph/operations/multiply.ts'
import { negate } from '../../../../engine/graph/operations/negate.ts'
import { reshape } from '../../../../engine/graph/operations/reshape.ts'
import { rmsNorm } from '../../../../engine/graph/operations/rms-norm.ts'
import { rotary } from '../../../../engine/graph/operations/rotary.ts'
import { scale } from '../../../../engine/graph/operations/scale.ts'
import { sigmoid } from '../../../../engine/graph/operations/sigmoid.ts'
import { concat, slice } from '../../../../engine/graph/operations/slice.ts'
import { softCap } from '../../../../engine/graph/operations/soft-cap.ts'
import { softmax } from '../../../../engine/graph/operations/softmax.ts'
import { subtract } from '../../../../engine/graph/operations/subtract.ts'
import { sumTo } from '../../../../engine/graph/operations/sum-to.ts'
import { swiglu } from '../../../../engine/graph/operations/swiglu.ts'
import { tanh } from '../../../../engine/graph/operations/tanh.ts'
import { transpose } from '../../../../engine/graph/operations/transpose.ts'
import { LEAST_LENGTH, positionFeeds, positionValues } from '../../../../engine/learner/positions.ts'
import { checkGradient } from '../finite-differences.ts'

const matrix = { shape: ['N', 3], dims: [2, 3] }
const row = { shape: [3], dims: [3] }
const column = { shape: ['N', 1], dims: [2, 1] }

/** Causal attention over two sequences, in a window where one is given. */
function checkAttention(length: number, options: AttentionOptions, window?: number): Promise<void> {
  const { heads, keyValueHeads, headDim } = options
  const some: Partial<ModelConfig> = {
    headDim,
    contextLength: 8,
    ropeTheta: 1e4,
    ...(window !== undefined && { slidingWindow: { tokens: window, layers: [true] } }),
  }
  const config = some as ModelConfig
  const { blocks } = positionValues(config, window === undefined ? 'full' : 'window')
  const kv = { shape: ['B', 'T', keyValueHeads * headDim], dims: [2, length, keyValueHeads * headDim] }
  return checkGradient(
    ({ q, k, v }) => attention(q!, k!, v!, blocks, options),
    { q: { shape: ['B', 'T', heads * headDim], dims: [2, length, heads * headDim] }, k: kv, v: kv },
    { feeds: positionFeeds(config)(length) },
  )
}

describe('gradients agree with finite differences', () => {
  for (const [name, operation] of Object.entries({ add, subtract, multiply })) {
    it(`${name}: same shape`, () => checkGradient(({ a, b }) => operation(a!, b!), { a: matrix, b: matrix }))
    it(`${name}: a row, a column, a scalar broadcast`, () =>
      checkGradient(({ a, b, c }) => operation(operation(operation(a!, b!), c!), scalar(0.7)), {
        a: matrix,
        b: row,
        c: column,
      }))
    it(`${name}: the smaller operand first`, () =>
      checkGradient(({ a, b }) => operation(b!, a!), { a: matrix, b: row }))
    it(`${name}: a value with itself`, () =>
      checkGradient(({ a }) => operation(a!, scale(a!, 2)), { a: matrix }))
  }
  for (const [name, operation] of Object.entries({ exp, negate, sigmoid, softmax, tanh, logSoftmax })) {
    it(name, () => checkGradient(({ a }) => operation(a!), { a: matrix }))
  }
  it('scale', () => checkGradient(({ a }) => scale(a!, -1.5), { a: matrix }))
  it('sumTo: leading and inner axes', () =>
    checkGradient(({ a }) => multiply(sumTo(a!, [3, 1]), sumTo(a!, [1, 1, 1])), {
      a: { shape: ['N', 3, 'M'], dims: [2, 3, 2] },
    }))
  it('reshape', () =>
    checkGradient(({ a, b }) => multiply(reshape(a!, ['N', 3, 2]), b!), {
      a: { shape: ['N', 6], dims: [2, 6] },
      b: { shape: ['N', 3, 2], dims: [2, 3, 2] },
    }))
  it('transpose', () =>
    checkGradient(({ a, b }) => multiply(transpose(a!, [1, 2, 0]), b!), {
      a: { shape: ['N', 3, 2], dims: [4, 3, 2] },
      b: { shape: [3, 2, 'N'], dims: [3, 2, 4] },
    }))
  for (const transposeA of [false, true]) {
    for (const transposeB of [false, true]) {
      it(`matmul: transposeA ${transposeA}, transposeB ${transposeB}`, () =>
        checkGradient(({ a, b }) => matmul(a!, b!, { transposeA, transposeB, scale: 0.5 }), {
          a: transposeA
            ? { shape: ['N', 3, 'M'], dims: [2, 3, 4] }
            : { shape: ['N', 'M', 3], dims: [2, 4, 3] },
          b: transposeB ? { shape: ['N', 5, 3], dims: [2, 5, 3] } : { shape: ['N', 3, 5], dims: [2, 3, 5] },
        }))
    }
  }
  it('linear: on [N, I] and on [B, T, I]', async () => {
    const w = { shape: [2, 3], dims: [2, 3] }
    await checkGradient(({ x, w }) => linear(x!, w!), { x: matrix, w })
    await checkGradient(({ x, w }) => linear(x!, w!), { x: { shape: ['B', 'T', 3], dims: [2, 4, 3] }, w })
  })
  it('linear: a weight used twice', () =>
    checkGradient(({ x, w }) => linear(linear(x!, w!), w!), {
      x: matrix,
      w: { shape: [3, 3], dims: [3, 3] },
    }))
  it('geglu', () => checkGradient(({ a, b }) => geglu(scale(a!, 2), b!), { a: matrix, b: matrix }))
  it('softCap', () => checkGradient(({ a }) => softCap(scale(a!, 3), 1.5), { a: matrix }))
  it('swiglu', () => checkGradient(({ a, b }) => swiglu(a!, b!), { a: matrix, b: matrix }))
  it('rmsNorm', () =>
    checkGradient(({ x, w }) => rmsNorm(x!, w!, 1e-5), {
      x: { shape: ['B', 'T', 3], dims: [2, 2, 3] },
      w: row,
    }))
  it('rmsNorm: within heads', () =>
    checkGradient(({ x, w }) => rmsNorm(x!, w!, 1e-5), {
      x: { shape: ['B', 'T', 2, 3], dims: [2, 2, 2, 3] },
      w: row,
    }))
  it('norm with an offset of its weight', () =>
    checkGradient(({ x, w }) => norm({ normEpsilon: 1e-5, normOffset: 1 } as ModelConfig, x!, w!), {
      x: matrix,
      w: row,
    }))
  it('rotary', () => {
    const angles = [0, 0, 1, 0.1, 2, 0.2]
    return checkGradient(({ x, cos, sin }) => rotary(x!, cos!, sin!), {
      x: { shape: ['B', 'T', 8], dims: [2, 3, 8] },
      cos: { shape: ['T', 2], dims: [3, 2], data: angles.map(Math.cos), constant: true },
      sin: { shape: ['T', 2], dims: [3, 2], data: angles.map(Math.sin), constant: true },
    })
  })
  it('slice and concat: parts of an axis, one of them empty', () => {
    const bound = (at: number) =>
      ({ shape: [1], dims: [1], data: [at], type: 'int64', constant: true }) as const
    return checkGradient(
      ({ a, b, c, d, e }) => {
        const of = e!
        const ranges = [
          { to: b!, of, length: 'p' },
          { from: b!, to: c!, of, length: 'q' },
          { from: c!, to: d!, of, length: 'r' },
          { from: d!, to: e!, of, length: 's' },
        ]
        const parts = ranges.map((range, index) => scale(slice(a!, 1, range), index + 1))
        return concat(parts, 1, ranges, 'T')
      },
      { a: { shape: ['N', 'T', 2], dims: [2, 5, 2] }, b: bound(1), c: bound(4), d: bound(4), e: bound(5) },
    )
  })
  for (const keyValueHeads of [1, 2, 4]) {
    for (const length of [LEAST_LENGTH, 5, 6]) {
      it(`attention: 4 query heads, ${keyValueHeads} key/value heads, causal, length ${length}`, () =>
        checkAttention(length, { heads: 4, keyValueHeads, headDim: 2, scale: 0.7 }))
    }
  }
  it('attention: a soft-cap of scores', () =>
    checkAttention(6, { heads: 2, keyValueHeads: 1, headDim: 2, scale: 1.5, softCap: 0.8 }))
  for (const window of [1, 2, 3, 5]) {
    it(`attention: a window of ${window} tokens`, () =>
      checkAttention(7, { heads: 2, keyValueHeads: 1, headDim: 2, scale: 1, softCap: 2 }, window))
  }
  it('chain with shared values', () =>
    checkGradient(
      ({ a, w }) => {
        const h = swiglu(linear(a!, w!), a!)
        return add(multiply(h, softmax(h)), add(a!, linear(h, w!)))
      },
      { a: matrix, w: { shape: [3, 3], dims: [3, 3] } },
    ))
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import { float } from '../../../engine/onnx/attribute.ts'
import { GraphBuilder } from '../../../engine/onnx/graph-builder.ts'
import { Session } from '../../../engine/runtime/session.ts'

describe('GraphBuilder', () => {
  it('builds a model that onnxruntime runs: inputs, constants, attributes of each kind', async () => {
    const g = new GraphBuilder('affine')
    const x = g.input('x', 'float32', ['N', 3])
    const w = g.initializer(
      'w',
      'float32',
      [2, 3],
      new Uint8Array(new Float32Array([1, 0, 0, 0, 1, 1]).buffer),
    )
    const y = g.node('Gemm', [x, w, g.float([10, 20])], { transB: 1, alpha: float(2) })
    g.output(g.node('Transpose', [y], { perm: [1, 0] }), 'float32', [2, 'N'], 'y')
    const session = await Session.create('affine', g.build(), { threads: 1 })
    const { y: got } = await session.run({ x: new Tensor('float32', [1, 2, 3, 4, 5, 6], [2, 3]) })
    assert.deepEqual(got!.dims, [2, 2])
    assert.deepEqual([...(got!.data as Float32Array)], [12, 18, 30, 42])
    await session.release()
  })

  it('takes operators of com.microsoft, with left-out and several outputs', async () => {
    const g = new GraphBuilder('norm')
    const x = g.input('x', 'float32', ['N', 2])
    const [y, , , sum] = g.nodes(
      'SkipSimplifiedLayerNormalization',
      [x, x, g.float([1, 1])],
      { epsilon: float(0) },
      {
        domain: 'com.microsoft',
        outputs: ['y', '', '', 'sum'],
      },
    )
    g.output(y!, 'float32', ['N', 2])
    g.output(sum!, 'float32', ['N', 2])
    const session = await Session.create('norm', g.build(), { threads: 1 })
    const got = await session.run({ x: new Tensor('float32', [3, 3], [1, 2]) })
    assert.deepEqual([...(got.sum!.data as Float32Array)], [6, 6])
    assert.deepEqual([...(got.y!.data as Float32Array)], [1, 1])
    await session.release()
  })

  it('gives the same bytes for the same calls, and shares equal constants', () => {
    const build = () => {
      const g = new GraphBuilder('same')
      const x = g.input('x', 'float32', ['N'])
      g.output(g.node('Mul', [g.node('Add', [x, g.float(2)]), g.float(2)]), 'float32', ['N'], 'y')
      return g.build()
    }
    assert.deepEqual(build(), build())
    const g = new GraphBuilder('shared')
    assert.equal(g.float(2), g.float(2))
    assert.notEqual(g.float(2), g.float([2]))
    assert.notEqual(g.float(0), g.float(-0))
  })

  it('names outputs as asked: inputs, values that go on being used, and one value under two names', async () => {
    const g = new GraphBuilder('names')
    const x = g.input('x', 'float32', [1])
    const twice = g.node('Add', [x, x])
    g.output(x, 'float32', [1], 'same')
    g.output(twice, 'float32', [1], 'a')
    g.output(twice, 'float32', [1], 'b')
    g.output(g.node('Add', [twice, twice]), 'float32', [1], 'c')
    const session = await Session.create('names', g.build(), { threads: 1 })
    const got = await session.run({ x: new Tensor('float32', [3], [1]) })
    const values = Object.entries(got).map(([name, { data }]) => [name, data[0]])
    assert.deepEqual(Object.fromEntries(values), { same: 3, a: 6, b: 6, c: 12 })
    await session.release()
  })

  it('refuses unknown values, doubled names and fractions as integers', () => {
    const g = new GraphBuilder('bad')
    g.input('x', 'float32', [1])
    assert.throws(() => g.node('Neg', ['y']), /Neg reads y/)
    assert.throws(() => g.input('x', 'float32', [1]), /two values are named x/)
    assert.throws(() => g.node('Gemm', ['x', 'x'], { alpha: 0.5 }), /alpha is 0.5/)
  })
})

/** Graphs that are lowered compute what they say. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import { LoweringBuilder } from '../../../engine/accelerator/lowering-builder.ts'
import { float } from '../../../engine/onnx/attribute.ts'
import { GraphBuilder, type Shape, siblingOutput, type Value } from '../../../engine/onnx/graph-builder.ts'
import { Session } from '../../../engine/runtime/session.ts'
import { assertClose } from '../learner/close-to.ts'

const COM = { domain: 'com.microsoft' } as const

function tensor(...dims: number[]): Tensor {
  const size = dims.reduce((product, length) => product * length, 1)
  return new Tensor(
    'float32',
    Float32Array.from({ length: size }, (_, i) => Math.sin(i * 1.7)),
    dims,
  )
}

type Make = (g: GraphBuilder) => Value

/** What both builders' graphs give for the inputs, and the operators that the lowered one has. */
async function both(inputs: Record<string, Tensor>, shape: Shape, make: Make) {
  const results: Float32Array[] = []
  let text = ''
  for (const builder of [new GraphBuilder('plain'), new LoweringBuilder('lowered')]) {
    for (const [name, { dims }] of Object.entries(inputs)) builder.input(name, 'float32', dims)
    builder.output(make(builder), 'float32', shape, 'y')
    const model = builder.build()
    text = Buffer.from(model).toString('latin1')
    const session = await Session.create(builder.name, model, { threads: 1 })
    results.push((await session.run(inputs)).y!.data as Float32Array)
    await session.release()
  }
  return { plain: results[0]!, lowered: results[1]!, text }
}

test('products: of matrices, of batches, transposed and scaled', async () => {
  const cases: [Record<string, Tensor>, Shape, Record<string, number | { float: number }>][] = [
    [{ a: tensor(3, 4), b: tensor(5, 4) }, [3, 5], { transB: 1 }],
    [{ a: tensor(4, 3), b: tensor(4, 5) }, [3, 5], { transA: 1, alpha: float(0.25) }],
    [{ a: tensor(2, 3, 4), b: tensor(5, 4) }, [2, 3, 5], { transB: 1 }],
    [{ a: tensor(2, 2, 3, 4), b: tensor(2, 2, 5, 4) }, [2, 2, 3, 5], { transB: 1, alpha: float(-3) }],
    [{ a: tensor(2, 2, 4, 3), b: tensor(2, 2, 4, 5) }, [2, 2, 3, 5], { transA: 1 }],
  ]
  for (const [inputs, shape, attributes] of cases) {
    const product: Make = g => g.node('FusedMatMul', ['a', 'b'], attributes, COM)
    const { plain, lowered, text } = await both(inputs, shape, product)
    assertClose(JSON.stringify(attributes), lowered, plain, 1e-6)
    assert.ok(!text.includes('FusedMatMul'))
  }
})

test('the logarithm of a softmax, also of numbers whose exponential is none', async () => {
  const x = tensor(2, 3, 8)
  ;(x.data as Float32Array)[5] = 1000
  const { plain, lowered, text } = await both({ x }, [2, 3, 8], g =>
    g.node('LogSoftmax', ['x'], { axis: -1 }),
  )
  assertClose('log-softmax', lowered, plain, 1e-6)
  assert.ok(!text.includes('LogSoftmax'))
})

test("a norm's second output is 1 / rms, and is not made where nobody reads it", async () => {
  const inputs = { x: tensor(2, 3, 8), w: tensor(8) }
  const attributes = { axis: -1, epsilon: float(1e-5), stash_type: 1 }
  const norm = (g: GraphBuilder) =>
    g.nodes('SimplifiedLayerNormalization', ['x', 'w'], attributes, { outputs: 2 })[0]!
  const used = await both(inputs, [2, 3, 8], g => {
    const normed = norm(g)
    return g.node('Mul', [normed, siblingOutput(normed, 1)])
  })
  assertClose('norm times 1 / rms', used.lowered, used.plain, 1e-6)
  const unused = await both(inputs, [2, 3, 8], norm)
  assertClose('norm', unused.lowered, unused.plain, 1e-6)
  assert.ok(used.text.includes('ReduceMean') && !unused.text.includes('ReduceMean'))
})

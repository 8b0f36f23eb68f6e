import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import { gradient } from '../../../engine/graph/gradient.ts'
import { input } from '../../../engine/graph/input.ts'
import { keptValues } from '../../../engine/graph/kept.ts'
import { buildModel } from '../../../engine/graph/model.ts'
import { add } from '../../../engine/graph/operations/add.ts'
import { linear } from '../../../engine/graph/operations/linear.ts'
import { log } from '../../../engine/graph/operations/log.ts'
import { multiply } from '../../../engine/graph/operations/multiply.ts'
import { reshape } from '../../../engine/graph/operations/reshape.ts'
import { sigmoid } from '../../../engine/graph/operations/sigmoid.ts'
import { softmax } from '../../../engine/graph/operations/softmax.ts'
import type { Value } from '../../../engine/graph/value.ts'
import { Session } from '../../../engine/runtime/session.ts'

const row = (...values: number[]) => new Tensor('float32', Float32Array.from(values), [1, values.length])

async function run(outputs: Record<string, Value>, feeds: Record<string, Tensor>) {
  const session = await Session.create('test', buildModel('test', outputs), { threads: 1 })
  const result = await session.run(feeds)
  await session.release()
  return Object.fromEntries(
    Object.entries(result).map(([name, { data }]) => [name, [...(data as Float32Array)]]),
  )
}

describe('gradient', () => {
  it('sums over all uses of a value', async () => {
    const x = input('x', ['N', 2])
    const [dx] = gradient(add(multiply(x, x), x), input('dy', ['N', 2]), [x])
    assert.deepEqual(await run({ dx: dx! }, { x: row(3, -1), dy: row(1, 10) }), { dx: [7, -10] })
  })

  it('adds onto a running sum, in one node where the operation can', async () => {
    const [x, w] = [input('x', ['N', 2]), input('w', [1, 2])]
    const onto = new Map([[w, input('sum', [1, 2])]])
    const [dw] = gradient(linear(x, w), input('dy', ['N', 1]), [w], { onto })
    assert.equal(dw!.inputs.length, 3)
    assert.deepEqual(await run({ dw: dw! }, { x: row(2, 3), dy: row(10), sum: row(1, 1) }), { dw: [21, 31] })
  })

  it('refuses what cannot be: no path, no gradient, an adjoint of another shape', () => {
    const [x, z] = [input('x', ['N', 2]), input('z', ['N', 2])]
    const dy = input('dy', ['N', 2])
    assert.throws(() => gradient(sigmoid(x), dy, [z]), /does not depend on z/)
    assert.throws(() => gradient(sigmoid(x), dy, [z], { onto: new Map([[z, x]]) }), /does not depend on z/)
    assert.throws(() => gradient(log(x), dy, [x]), /log.* has no gradient/)
    assert.throws(() => gradient(sigmoid(x), input('dy', ['N', 3]), [x]), /adjoint/)
  })
})

describe('shapes are checked when a graph is put together', () => {
  const x = input('x', ['N', 2])
  for (const [name, make] of Object.entries({
    add: () => add(x, input('y', ['M', 2])),
    linear: () => linear(x, input('w', [4, 3])),
    reshape: () => reshape(input('a', ['B', 'T', 6]), ['T', 'B', 6]),
  })) {
    it(name, () => assert.throws(make, new RegExp(`${name}.* cannot take`)))
  }
})

describe('keptValues', () => {
  it('keeps what is dear, recomputes what is cheap, and leaves inputs and unneeded values out', () => {
    const [x, w] = [input('x', ['N', 2]), input('w', [2, 2])]
    const h = linear(x, w)
    const gate = sigmoid(h)
    const p = softmax(multiply(gate, x))
    const unneeded = linear(p, w)
    const [dx] = gradient(p, input('dy', ['N', 2]), [x])
    assert.deepEqual(new Set(keptValues(add(p, unneeded), [dx!])), new Set([h, p]))
  })
})

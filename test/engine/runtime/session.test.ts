import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import { GraphBuilder } from '../../../engine/onnx/graph-builder.ts'
import { markWritten } from '../../../engine/onnx/written-marker.ts'
import { Session } from '../../../engine/runtime/session.ts'
import { GraspError } from '../../../errors/grasp-error.ts'

function doubling(marked = false): Uint8Array {
  const g = new GraphBuilder('doubling')
  if (marked) markWritten(g)
  g.output(
    g.node('MatMul', [g.input('x', 'float32', ['N', 2]), g.input('w', 'float32', [2, 2])]),
    'float32',
    ['N', 2],
    'y',
  )
  return g.build()
}

describe('Session', () => {
  it('names the graph and the given shapes when a run fails', async () => {
    const session = await Session.create('doubling', doubling(), { threads: 1 })
    const bad = {
      x: new Tensor('float32', [1, 2, 3], [1, 3]),
      w: new Tensor('float32', [1, 0, 0, 1], [2, 2]),
    }
    await assert.rejects(session.run(bad), (error: unknown) => {
      assert(error instanceof GraspError && error.code === 'ENGINE_FAILED')
      assert.match(error.message, /graph doubling failed on x float32\[1,3\]/)
      return true
    })
    await session.release()
  })

  it('writes outputs where they are given, and with a marker copies none', async () => {
    for (const marked of [false, true]) {
      const session = await Session.create('doubling', doubling(marked), { threads: 1 })
      const x = new Tensor('float32', [1, 2], [1, 2])
      const feeds = { x, w: new Tensor('float32', [2, 0, 0, 2], [2, 2]) }
      const y = new Tensor('float32', new Float32Array(2), [1, 2])
      const results = await session.run(feeds, { y })
      assert.deepEqual(y.data, Float32Array.of(2, 4))
      assert.deepEqual(Object.keys(results), ['y'])
      // Without the marker, the run made another tensor of the same values.
      assert.equal(results.y === y, marked)
      for (const fresh of [await session.run(feeds), await session.run(feeds, { y: null })]) {
        assert.deepEqual(Object.keys(fresh), ['y'])
        assert.deepEqual(fresh.y!.data, Float32Array.of(2, 4))
      }
      const bad = { ...feeds, x: new Tensor('float32', [1, 2, 3], [1, 3]) }
      await assert.rejects(session.run(bad, { y }), /graph doubling failed on x float32\[1,3\]/)
      await session.release()
    }
  })

  it('names the graph when it cannot be loaded', async () => {
    await assert.rejects(
      Session.create('junk', new Uint8Array([1, 2, 3]), { threads: 1 }),
      (error: unknown) => {
        assert(error instanceof GraspError && error.code === 'ENGINE_FAILED')
        assert.match(error.message, /graph junk cannot be loaded/)
        return true
      },
    )
  })
})

/** What stays on a WebGPU device, and what does not. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import type { Device } from '../../../engine/accelerator/device.ts'
import { squaresGraph, zerosGraph } from '../../../engine/accelerator/graphs.ts'
import { LoweringBuilder } from '../../../engine/accelerator/lowering-builder.ts'
import { openOnnxDevice } from '../../../engine/accelerator/onnx-device.ts'
import { scoped } from '../../../engine/accelerator/scope.ts'
import { withoutVulkanDevice } from '../../helpers/vulkan-device.ts'

const MB = 2 ** 20

describe('a WebGPU device', { skip: withoutVulkanDevice() }, () => {
  let device: Device
  before(async () => {
    device = await openOnnxDevice({ kind: 'webgpu', threads: 1 })
  })
  after(async () => {
    assert.equal(device.live, 0)
    await device.close()
  })

  it('keeps tensors of every type there, and gives copies back', async () => {
    for (const tensor of [
      new Tensor('float32', Float32Array.of(1.5, -0, 3), [3]),
      new Tensor('int32', Int32Array.of(-7, 8), [1, 2]),
    ]) {
      const resident = await device.upload(tensor)
      assert.equal(resident.location, 'gpu-buffer')
      const back = await device.download(resident)
      assert.deepEqual([back.location, back.data, back.dims], ['cpu', tensor.data, tensor.dims])
      device.free(resident)
      assert.throws(() => device.free(resident), /does not live/)
    }
  })

  it('memory is flat over many updates of a tensor', async () => {
    const g = new LoweringBuilder('halve')
    g.output(g.node('Mul', [g.input('x', 'float32', ['A', 'B']), g.float(0.5)]), 'float32', ['A', 'B'], 'y')
    const session = await device.session('halve', g.build())
    let x = await device.upload(new Tensor('float32', new Float32Array(4 * MB).fill(1), [4096, 1024]))
    const update = async () => {
      const next = await scoped(device, async scope => scope.keep((await session.run({ x }, scope)).y!))
      device.free(x)
      x = next
    }
    for (let step = 0; step < 5; step++) await update()
    const before = process.memoryUsage.rss()
    for (let step = 0; step < 60; step++) await update()
    // Each step makes 16 MiB: were they not freed, it would be 960.
    const grown = (process.memoryUsage.rss() - before) / MB
    assert.ok(grown < 160, `grown by ${grown} MiB`)
    assert.equal(device.live, 1)
    device.free(x)
    await session.release()
  })

  it('an operator that it lacks is an error, not a detour over the CPU', async () => {
    const g = new LoweringBuilder('lacking')
    const x = g.input('x', 'float32', ['A'])
    g.output(g.node('Hardmax', [x], { axis: -1 }), 'float32', ['A'], 'y')
    await assert.rejects(device.session('lacking', g.build()), {
      code: 'ENGINE_FAILED',
      message: /graph lacking cannot be loaded.*fallback to CPU EP has been explicitly disabled/,
    })
  })

  it('what it has no room for is told with what to do', async () => {
    const session = await device.session('zeros', zerosGraph(2))
    // 12 GiB: refused before anything is allocated.
    const shape = new Tensor('int64', BigInt64Array.of(2n ** 16n, 3n * 2n ** 14n), [2])
    await assert.rejects(
      scoped(device, scope => session.run({ shape }, scope)),
      { code: 'ENGINE_FAILED', message: /graph zeros failed.*The webgpu device has no room.*tokensPerPass/s },
    )
    const small = new Tensor('int64', BigInt64Array.of(2n, 3n), [2])
    const { y } = await scoped(device, async scope => {
      const made = await session.run({ shape: small }, scope)
      return { y: await device.download(made.y!) }
    })
    assert.deepEqual(y.data, new Float32Array(6))
    await session.release()
  })

  it('sums the squares of a large matrix as exactly as f32 allows', async () => {
    const x = await device.upload(
      new Tensor(
        'float32',
        Float32Array.from({ length: MB }, (_, i) => (i % 7) - 3),
        [2048, 512],
      ),
    )
    const session = await device.session('squares', squaresGraph(2), [])
    const sum = new Tensor('float32', Float32Array.of(1), [1])
    const { y } = await scoped(device, scope => session.run({ x, sum }, scope))
    const expected = 1 + Array.from({ length: MB }, (_, i) => ((i % 7) - 3) ** 2).reduce((a, b) => a + b, 0)
    assert.ok(Math.abs((y!.data as Float32Array)[0]! / expected - 1) < 1e-6)
    device.free(x)
  })
})

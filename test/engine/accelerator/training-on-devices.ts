/** Training on a device against training on the CPU, and checkpoints that go from one to the other. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Device } from '../../../engine/accelerator/device.ts'
import { deviceBackend } from '../../../engine/accelerator/device-backend.ts'
import { openOnnxDevice } from '../../../engine/accelerator/onnx-device.ts'
import { openLocalEngine } from '../../../engine/local-engine.ts'
import type { Engine, EngineOptions, LoraOptions, UpdateOptions } from '../../../engine/port.ts'
import { loadModelDirectory } from '../../../engine/weights/model-directory.ts'
import type { Weights } from '../../../engine/weights/weights.ts'
import { makeTinyModel, type TinyModel } from '../../helpers/tiny-model.ts'
import { assertClose } from '../learner/close-to.ts'
import { ITEMS } from '../learner/items.ts'

const LORA: LoraOptions = {
  rank: 4,
  alpha: 8,
  rankStabilised: false,
  targets: ['q_proj', 'down_proj'],
  seed: 4,
}
const UPDATE: UpdateOptions = {
  responses: 2,
  learningRate: 1e-2,
  betas: [0.9, 0.95],
  // Large enough that a gradient which is nothing but rounding moves its weight by as little.
  epsilon: 1e-4,
  weightDecay: 0.1,
  clip: 1,
}

export function trainingOnDevice(name: string, kind: Device['kind']): void {
  describe(name, () => {
    let folder: string
    let model: TinyModel
    const engines: Engine[] = []
    const devices: Device[] = []
    const open = async (where: 'cpu' | 'device', options: Partial<EngineOptions> = {}) => {
      const all: EngineOptions = {
        path: model.path,
        device: 'cpu',
        threads: 2,
        keepPolicies: 0,
        tokensPerPass: 256,
        sequencesPerPass: 4,
        ...options,
      }
      const engine = await (where === 'cpu'
        ? openLocalEngine(all)
        : openLocalEngine(all, async (config, rest) => {
            const device = await openOnnxDevice({ kind, threads: 2 })
            devices.push(device)
            return deviceBackend(device, config, rest)
          }))
      engines.push(engine)
      return engine
    }
    const step = async (engine: Engine) => {
      const { losses } = await engine.accumulate(ITEMS)
      return { ...(await engine.update(UPDATE)), losses }
    }
    const weightsOf = async (engine: Engine): Promise<Weights> => {
      const path = join(folder, 'exported')
      await engine.exportPolicy(await engine.policyVersion(), path, 'f32', { replace: true })
      return (await loadModelDirectory(path)).weights
    }
    const assertAgree = async (one: Engine, other: Engine) => {
      const expected = await weightsOf(other)
      for (const [parameter, { data }] of await weightsOf(one)) {
        const their = expected.get(parameter)!.data as Float32Array
        assertClose(parameter, data as Float32Array, their)
      }
    }

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'grasp-device-'))
      model = await makeTinyModel()
    })
    after(async () => {
      for (const engine of engines) await engine.close()
      for (const device of devices) assert.equal(device.live, 0)
      await model.remove()
      await rm(folder, { recursive: true })
    })

    for (const [what, options] of Object.entries({ 'all parameters': {}, 'an adapter': { lora: LORA } })) {
      it(`gives the CPU's weights, losses and norms: ${what}`, async () => {
        const [cpu, device] = [await open('cpu', options), await open('device', options)]
        for (let i = 0; i < 3; i++) {
          const [expected, found] = [await step(cpu), await step(device)]
          assertClose('losses', found.losses, expected.losses, 1e-5)
          assertClose('gradient norm', [found.gradientNorm], [expected.gradientNorm], 1e-5)
        }
        await assertAgree(device, cpu)
      })

      it(`gives the same bits again, with versions kept or not: ${what}`, async () => {
        const [one, again] = [
          await open('device', options),
          await open('device', { ...options, keepPolicies: 2 }),
        ]
        for (let i = 0; i < 3; i++) assert.deepEqual(await step(again), await step(one))
        assert.equal(await one.weightsHash('teacher'), await again.weightsHash('teacher'))
        assert.notEqual(await again.weightsHash(1), await again.weightsHash(2))
      })

      it(`checkpoints go from the device to the CPU and back: ${what}`, async () => {
        const path = join(folder, `checkpoint of ${what}`)
        const device = await open('device', options)
        await step(device)
        await device.saveCheckpoint(path, 'there')
        const cpu = await open('cpu', options)
        assert.equal(await cpu.loadCheckpoint(path), 'there')
        assert.equal(await cpu.weightsHash(1), await device.weightsHash(1))
        await step(cpu)
        const expected = await step(device)
        await assertAgree(device, cpu)
        await cpu.saveCheckpoint(path, 'back')
        const other = await open('device', options)
        await other.loadCheckpoint(path)
        assert.equal(await other.weightsHash(2), await cpu.weightsHash(2))
        // From its own checkpoint it goes on with the same bits.
        await device.saveCheckpoint(path, null)
        await other.loadCheckpoint(path)
        assert.equal(await other.weightsHash(2), expected.weightsHash)
        assert.deepEqual(await step(other), await step(device))
      })
    }

    it('what is held on the device is the same after every step', async () => {
      const device = await open('device')
      await step(device)
      const { live } = devices.at(-1)!
      for (let i = 0; i < 3; i++) {
        await step(device)
        assert.equal(devices.at(-1)!.live, live)
      }
      await device.accumulate(ITEMS)
      assert.ok(devices.at(-1)!.live > live)
      await device.discard()
      assert.equal(devices.at(-1)!.live, live)
    })
  })
}

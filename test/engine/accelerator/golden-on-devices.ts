/** A device against PyTorch and transformers (test/golden/models.py made the values), and against the CPU's decoder. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Device } from '../../../engine/accelerator/device.ts'
import { DeviceDecoder } from '../../../engine/accelerator/device-decoder.ts'
import { DeviceLearner } from '../../../engine/accelerator/device-learner.ts'
import { openOnnxDevice } from '../../../engine/accelerator/onnx-device.ts'
import {
  downloadWeights,
  freeWeights,
  type ResidentWeights,
  uploadWeights,
} from '../../../engine/accelerator/resident.ts'
import { Decoder } from '../../../engine/decoding/decoder.ts'
import type { TrainItem } from '../../../engine/port.ts'
import { randomStream } from '../../../engine/sampling/random-stream.ts'
import { headName } from '../../../engine/weights/parameter-shapes.ts'
import { type Golden, type GoldenName, readGolden, STEPPED } from '../../golden/golden.ts'
import { assertClose } from '../learner/close-to.ts'
import { goldenItems, responseSequence } from '../learner/items.ts'

const SAMPLING = { temperature: 1, topK: 0, topP: 1, minP: 0, stop: [], maxNewTokens: 10, seed: 5 }

export interface GoldenOptions {
  readonly names: readonly GoldenName[]
  readonly kind: Device['kind']
  readonly bindingBytes?: number
}

export function goldenOnDevice(what: string, { names, kind, bindingBytes }: GoldenOptions): void {
  for (const name of names) {
    describe(`${name} ${what}`, () => {
      let device: Device
      let golden: Golden
      let learner: DeviceLearner
      let student: ResidentWeights
      let teacher: ResidentWeights
      let items: Record<'forward-kl' | 'cross-entropy', TrainItem[]>

      before(async () => {
        golden = await readGolden(name)
        const { config } = golden
        device = await openOnnxDevice({ kind, threads: 2, bindingBytes })
        learner = new DeviceLearner(device, config, { tokensPerPass: 24 })
        student = await uploadWeights(device, config, golden.tensors('student'))
        teacher = await uploadWeights(device, config, golden.tensors('teacher'))
        const { parts } = student.get(headName(config))!
        assert.equal(parts.length > 1, bindingBytes !== undefined)
        const hidden = await learner.hiddenStates(
          teacher,
          golden.items.map(item => responseSequence(item.teacherPrompt, item.response)),
        )
        items = goldenItems(golden, hidden)
      })
      after(async () => {
        learner.free()
        freeWeights(student)
        freeWeights(teacher)
        assert.equal(device.live, 0)
        await device.close()
      })

      it('logits', async () => {
        const sequences = golden.items.map(item => responseSequence(item.prompt, item.response))
        const head = student.get(headName(golden.config))!
        for (const [index, hidden] of (await learner.hiddenStates(student, sequences)).entries()) {
          const expected = golden.tensors('logits').get(`${index}`)!.data as Float32Array
          assertClose(`logits of item ${index}`, await learner.logits({ hidden, head }), expected)
        }
      })

      for (const kind of ['forward-kl', 'cross-entropy'] as const) {
        it(`${kind}: losses and gradients`, async () => {
          const head = teacher.get(headName(golden.config))!
          const { losses } = await learner.accumulate(student, student, head, items[kind])
          assertClose(`${kind} losses`, losses, golden.losses[kind])
          const expected = golden.tensors(kind)
          assert.deepEqual([...expected.keys()].sort(), [...student.keys()].sort())
          for (const [parameter, { data }] of expected) {
            const gradient = (await learner.gradient(parameter))!
            assertClose(`${kind} gradient of ${parameter}`, gradient, data as Float32Array)
          }
          learner.discard()
        })
      }

      it('decodes what the CPU does: alone and among others', async () => {
        const { config } = golden
        const options = { threads: 2, tokensPerPass: 4, sequencesPerPass: 4, stopTokens: [1, 2, 3, 4] }
        const [decoder, cpu] = [
          new DeviceDecoder(device, config, options),
          await Decoder.create(config, options),
        ]
        const requests = [3, 1, 11, 6, 7].map((length, number) => ({
          key: `${number}`,
          prompt: Int32Array.from({ length }, (_, i) => (number * 31 + i * 17) % config.vocabularySize),
          random: randomStream({ seed: 1, key: `${number}`, policy: 0 }),
        }))
        const expected = await cpu.generate(golden.tensors('student'), requests, SAMPLING)
        const found = await decoder.generate(student, requests, SAMPLING)
        for (const [index, { ids, finish, logp }] of expected.entries()) {
          assert.deepEqual([found[index]!.ids, found[index]!.finish], [ids, finish])
          logp.forEach((nats, t) => {
            assert.ok(Math.abs(nats - found[index]!.logp[t]!) < 5e-5)
          })
        }
        assert.deepEqual(await decoder.generate(student, requests.slice(2, 3), SAMPLING), [found[2]])
        decoder.free()
        await cpu.release()
      })

      if (!STEPPED.includes(name)) return
      it('AdamW steps with clipping and decay; nothing is left of a step', async () => {
        const head = teacher.get(headName(golden.config))!
        let weights = student
        let live = 0
        for (let step = 0; step < golden.steps; step++) {
          await learner.accumulate(weights, weights, head, items['forward-kl'])
          const options = { ...golden.options, responses: golden.items.length }
          const keeping = { made: async () => {}, frees: () => step > 0 }
          const updated = await learner.update(weights, options, keeping)
          assertClose(`gradient norm of step ${step}`, [updated.gradientNorm], [golden.gradientNorms[step]!])
          weights = updated.weights
          if (step > 0) assert.equal(device.live, live)
          live = device.live
        }
        const stepped = await downloadWeights(device, weights)
        for (const [parameter, { data }] of golden.tensors('stepped')) {
          const got = stepped.get(parameter)!.data as Float32Array
          assertClose(`${parameter} after ${golden.steps} steps`, got, data as Float32Array)
        }
        freeWeights(weights)
      })
    })
  }
}

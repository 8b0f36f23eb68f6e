/** The learner's contract on a device: weights go there when they are first used. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import type { Tensor } from 'onnxruntime-node'
import type { Device } from '../../../engine/accelerator/device.ts'
import { DeviceLearner } from '../../../engine/accelerator/device-learner.ts'
import { openOnnxDevice } from '../../../engine/accelerator/onnx-device.ts'
import {
  downloadWeights,
  freeWeights,
  type Resident,
  type ResidentWeights,
  uploadWeights,
} from '../../../engine/accelerator/resident.ts'
import type { HeadInput } from '../../../engine/learner/head.ts'
import { headName } from '../../../engine/weights/parameter-shapes.ts'
import type { Weights } from '../../../engine/weights/weights.ts'
import { learnerContract } from '../learner/learner-contract.ts'

export function learnerOnDevice(name: string, kind: Device['kind'], bindingBytes?: number): void {
  const devices: Device[] = []
  learnerContract(name, async (config, { threads, ...options }) => {
    const device = await openOnnxDevice({ kind, threads, bindingBytes })
    devices.push(device)
    const learner = new DeviceLearner(device, config, options)
    const resident = new Map<Weights, ResidentWeights>()
    const there = async (weights: Weights): Promise<ResidentWeights> => {
      const known = resident.get(weights) ?? (await uploadWeights(device, config, weights))
      resident.set(weights, known)
      return known
    }
    const heads = new Map<Tensor, Weights>()
    const head = async (tensor: Tensor): Promise<Resident> => {
      const alone = heads.get(tensor) ?? new Map([[headName(config), tensor]])
      heads.set(tensor, alone)
      return (await there(alone)).get(headName(config))!
    }
    const input = async ({ hidden, head: tensor }: HeadInput) => ({ hidden, head: await head(tensor) })
    return {
      hiddenStates: async (weights, sequences) => learner.hiddenStates(await there(weights), sequences),
      numbers: async (student, teacher, observed) =>
        learner.numbers(await input(student), await input(teacher), observed),
      logits: async given => learner.logits(await input(given)),
      accumulate: async (weights, teacherHead, items) => {
        const held = await there(weights)
        return learner.accumulate(held, held, await head(teacherHead), items)
      },
      gradient: parameter => learner.gradient(parameter),
      discard: () => learner.discard(),
      update: async (weights, how) => {
        const keeping = { made: async () => {}, frees: () => false }
        const { weights: next } = await learner.update(await there(weights), how, keeping)
        const fetched = await downloadWeights(device, next)
        resident.set(fetched, next)
        return { weights: fetched }
      },
      close: async () => {
        learner.free()
        for (const weights of resident.values()) freeWeights(weights)
        await device.close()
      },
    }
  })
  after(() => {
    assert.ok(devices.length > 0)
    for (const device of devices) assert.equal(device.live, 0)
  })
}

/**
 * A device that fails in the middle of whatever it is asked for, as one that has run out of memory does: nothing that
 * was made until then may stay on it, since nobody is left to free it.
 */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import type { Device } from '../../../engine/accelerator/device.ts'
import { deviceBackend } from '../../../engine/accelerator/device-backend.ts'
import { openOnnxDevice } from '../../../engine/accelerator/onnx-device.ts'
import type { Backend, Held } from '../../../engine/backend.ts'
import type { LoraOptions } from '../../../engine/port.ts'
import { randomStream } from '../../../engine/sampling/random-stream.ts'
import { EMBEDDING } from '../../../engine/weights/parameter-shapes.ts'
import { type Golden, readGolden } from '../../golden/golden.ts'

const LORA: LoraOptions = { rank: 2, alpha: 4, rankStabilised: false, targets: ['all-linear'], seed: 1 }
const SAMPLING = { temperature: 1, topK: 0, topP: 1, minP: 0, stop: [], maxNewTokens: 3, seed: 5 }

let golden: Golden
before(async () => {
  golden = await readGolden('llama-tied')
})

/** The device, but that its run or copy of this number fails. `count` is of those that were asked for. */
function failing(device: Device, at: number): Device & { readonly count: number } {
  let count = 0
  const step = () => {
    if (++count === at) throw new Error('out of memory')
  }
  return {
    kind: device.kind,
    bindingBytes: device.bindingBytes,
    get live() {
      return device.live
    },
    get count() {
      return count
    },
    async session(...args) {
      const { run, release } = await device.session(...args)
      return {
        run: async (...given) => {
          step()
          return run(...given)
        },
        release,
      }
    },
    async upload(tensor) {
      step()
      return device.upload(tensor)
    },
    async download(tensor) {
      step()
      return device.download(tensor)
    },
    free: tensor => device.free(tensor),
    close: () => device.close(),
  }
}

/** All that a backend does, from the weights on. Gives what is held of it, also where it failed. */
async function everything(backend: Backend, held: Held[]): Promise<void> {
  const { config, items, options } = golden
  const hold = async () => {
    const weights = await backend.hold(golden.tensors('student'))
    held.push(weights)
    return weights
  }
  const teacher = await hold()
  const weights = await hold()
  const requests = items.map(({ prompt }, index) => ({
    key: `${index}`,
    prompt,
    random: randomStream({ seed: 1, key: `${index}`, policy: 0 }),
  }))
  await backend.generate(weights, requests, SAMPLING, () => {})
  const sequences = items.map(({ prompt }) => ({ ids: prompt, from: 0, count: prompt.length }))
  const hidden = (await backend.hiddenStates(weights, sequences))[0]!
  const head = { hidden, head: weights.get(EMBEDDING)! }
  await backend.logits(head)
  await backend.numbers(head, head, new Int32Array(hidden.length / config.hiddenSize))
  for (let step = 0; step < 2; step++) {
    const distil = items.map(({ prompt, response }) => ({ loss: 'cross-entropy' as const, prompt, response }))
    await backend.accumulate(weights, teacher.get(EMBEDDING)!, distil)
    const { weights: next } = await backend.update(
      weights,
      { teacher, keep: true },
      { ...options, responses: items.length },
    )
    held.push(next)
  }
  await backend.restore(await backend.training())
}

for (const [what, lora] of [
  ['all parameters', undefined],
  ['an adapter', LORA],
] as const) {
  test(`nothing stays on a device that fails, wherever it does: ${what}`, async () => {
    const trial = async (at: number) => {
      const device = failing(
        await openOnnxDevice({ kind: 'cpu', threads: 1, bindingBytes: 4 * 64 * golden.config.hiddenSize }),
        at,
      )
      const held: Held[] = []
      const backend = deviceBackend(device, golden.config, {
        path: '',
        device: 'webgpu',
        threads: 1,
        keepPolicies: 1,
        tokensPerPass: 64,
        sequencesPerPass: 2,
        stopTokens: [],
        ...(lora && { lora }),
      })
      const work = everything(backend, held)
      if (at <= 0) await work
      else await assert.rejects(work, /out of memory/)
      for (const weights of held) backend.release(weights, [])
      await backend.close()
      assert.equal(device.live, 0, `after the failure of step ${at}`)
      return device.count
    }
    const steps = await trial(0)
    assert.ok(steps > 200, `${steps} steps`)
    for (let at = 1; at <= steps; at += Math.ceil(steps / 16)) await trial(at)
  })
}

/** Decoding on a device: company, places that are used again, prompts that begin alike, the end of the context. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Device } from '../../../engine/accelerator/device.ts'
import { DeviceDecoder } from '../../../engine/accelerator/device-decoder.ts'
import { openOnnxDevice } from '../../../engine/accelerator/onnx-device.ts'
import { freeWeights, type ResidentWeights, uploadWeights } from '../../../engine/accelerator/resident.ts'
import { Decoder } from '../../../engine/decoding/decoder.ts'
import type { Generation } from '../../../engine/port.ts'
import { randomStream } from '../../../engine/sampling/random-stream.ts'
import { type Golden, readGolden } from '../../golden/golden.ts'

const SAMPLING = { temperature: 1, topK: 0, topP: 1, minP: 0, stop: [], maxNewTokens: 8, seed: 5 }

export function decoderOnDevice(name: string, kind: Device['kind']): void {
  describe(name, () => {
    let device: Device
    let golden: Golden
    let weights: ResidentWeights
    const opened: DeviceDecoder[] = []
    const open = (options: { sequencesPerPass: number; stopTokens?: number[]; tokensPerPass?: number }) => {
      const decoder = new DeviceDecoder(device, golden.config, {
        tokensPerPass: 64,
        stopTokens: [],
        ...options,
      })
      opened.push(decoder)
      return decoder
    }
    const request = (number: number, prompt: Int32Array) => ({
      key: `${number}`,
      prompt,
      random: randomStream({ seed: 1, key: `${number}`, policy: 0 }),
    })
    const promptOf = (length: number, salt: number) =>
      Int32Array.from({ length }, (_, i) => (salt * 31 + i * 17) % golden.config.vocabularySize)

    before(async () => {
      golden = await readGolden('llama-untied')
      device = await openOnnxDevice({ kind, threads: 2 })
      weights = await uploadWeights(device, golden.config, golden.tensors('student'))
    })
    after(async () => {
      for (const decoder of opened) decoder.free()
      freeWeights(weights)
      assert.equal(device.live, 0)
      await device.close()
    })

    it('rows that end make room for others; a response is the same in any company', async () => {
      const decoder = open({ sequencesPerPass: 3, stopTokens: [1, 2, 3, 4, 5, 6] })
      const requests = Array.from({ length: 9 }, (_, number) =>
        request(number, promptOf(1 + (number % 5), number)),
      )
      const together = await decoder.generate(weights, requests, SAMPLING)
      assert.ok(
        new Set(together.map(({ ids }) => ids.length)).size > 2,
        'they should end at different lengths',
      )
      for (const number of [0, 4, 8]) {
        assert.deepEqual(await decoder.generate(weights, [requests[number]!], SAMPLING), [together[number]])
      }
    })

    it('prompts that begin alike are read once, with the bits of each alone, and nothing of it stays', async () => {
      const END = 7
      const decoder = open({ sequencesPerPass: 2, stopTokens: [END], tokensPerPass: 34 })
      const common = promptOf(40, 3)
      common[32] = END
      const requests = [2, 5, 1].map(number =>
        request(number, Int32Array.from([...common, ...promptOf(number, number)])),
      )
      const alone: Generation[] = []
      for (const each of requests) alone.push(...(await decoder.generate(weights, [each], SAMPLING)))
      const { live } = device
      assert.deepEqual(await decoder.generate(weights, requests, SAMPLING), alone)
      assert.deepEqual(await decoder.generate(weights, requests.toReversed(), SAMPLING), alone.toReversed())
      assert.equal(device.live, live)
      const cpu = await Decoder.create(golden.config, {
        threads: 1,
        tokensPerPass: 34,
        sequencesPerPass: 2,
        stopTokens: [END],
      })
      const expected = await cpu.generate(golden.tensors('student'), requests, SAMPLING)
      assert.deepEqual(
        alone.map(({ ids }) => ids),
        expected.map(({ ids }) => ids),
      )
      await cpu.release()
    })

    it('a response may fill the context to its last token, and no further', async () => {
      const { contextLength } = golden.config
      const decoder = open({ sequencesPerPass: 2 })
      const [full] = await decoder.generate(weights, [request(0, promptOf(contextLength - 8, 0))], SAMPLING)
      assert.equal(full!.ids.length, 8)
      const long = [request(1, promptOf(3, 1)), request(0, promptOf(contextLength - 7, 0))]
      await assert.rejects(decoder.generate(weights, long, SAMPLING), { code: 'PROMPT_TOO_LONG' })
      await assert.rejects(decoder.generate(weights, [request(0, promptOf(0, 0))], SAMPLING), {
        code: 'PROMPT_INVALID',
      })
      assert.deepEqual(await decoder.generate(weights, [], SAMPLING), [])
    })
  })
}

/** Every architecture decodes what its training graphs, and PyTorch, see. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { ModelConfig } from '../../../engine/architectures/config.ts'
import { Decoder } from '../../../engine/decoding/decoder.ts'
import type { Request } from '../../../engine/decoding/row.ts'
import { Learner } from '../../../engine/learner/learner.ts'
import type { Generation, SamplingOptions } from '../../../engine/port.ts'
import { randomStream } from '../../../engine/sampling/random-stream.ts'
import { headName } from '../../../engine/weights/parameter-shapes.ts'
import type { Weights } from '../../../engine/weights/weights.ts'
import { GOLDEN, readGolden } from '../../golden/golden.ts'
import { responseSequence } from '../learner/items.ts'

const GREEDY: SamplingOptions = {
  temperature: 0,
  topK: 0,
  topP: 1,
  minP: 0,
  stop: [],
  maxNewTokens: 1,
  seed: 1,
}

const closing: (() => Promise<void>)[] = []
after(async () => {
  for (const close of closing) await close()
})

/** 4 tokens of a prompt a pass: longer ones are read in several. */
async function decoderOf(config: ModelConfig): Promise<Decoder> {
  const decoder = await Decoder.create(config, {
    threads: 2,
    tokensPerPass: 4,
    sequencesPerPass: 4,
    stopTokens: [],
  })
  closing.push(() => decoder.release())
  return decoder
}

function request(prompt: Int32Array, number = 0): Request {
  return { key: `${number}`, prompt, random: randomStream({ seed: 1, key: `${number}`, policy: 0 }) }
}

function logpOf(row: Float32Array, id: number): number {
  const top = Math.max(...row)
  return row[id]! - top - Math.log(row.reduce((sum, logit) => sum + Math.exp(logit - top), 0))
}

/** That a greedy response is, token by token, what the training graphs find most probable. */
async function checkGreedy(
  config: ModelConfig,
  learner: Learner,
  weights: Weights,
  { prompt }: Request,
  { ids, logp }: Generation,
): Promise<void> {
  const [hidden] = await learner.hiddenStates(weights, [responseSequence(prompt, ids)])
  const logits = await learner.logits({ hidden: hidden!, head: weights.get(headName(config))! })
  for (const [t, id] of ids.entries()) {
    const row = logits.subarray(t * config.vocabularySize, (t + 1) * config.vocabularySize)
    assert.equal(id, row.indexOf(Math.max(...row)), `token ${t} of a prompt of ${prompt.length}`)
    const expected = logpOf(row, id)
    assert(Math.abs(expected - logp[t]!) < 5e-5, `token ${t}: ${expected} in training, ${logp[t]} decoded`)
  }
}

for (const name of GOLDEN) {
  describe(name, () => {
    it("gives PyTorch's log-probabilities", async () => {
      const { config, items, tensors } = await readGolden(name)
      const decoder = await decoderOf(config)
      for (const [number, { prompt, response }] of items.entries()) {
        const logits = tensors('logits').get(`${number}`)!.data as Float32Array
        // The response token by token: each is the first token after the prompt and those before it.
        for (let t = 0; t < response.length; t++) {
          const row = logits.subarray(t * config.vocabularySize, (t + 1) * config.vocabularySize)
          const before = Int32Array.from([...prompt, ...response.subarray(0, t)])
          const [found] = await decoder.generate(tensors('student'), [request(before)], GREEDY)
          assert.equal(found!.ids[0], row.indexOf(Math.max(...row)))
          assert(Math.abs(found!.logp[0]! - logpOf(row, found!.ids[0]!)) < 5e-5)
        }
      }
    })

    it('decodes what the training graphs see: alone and among others of unequal lengths, past any window', async () => {
      const { config, tensors } = await readGolden(name)
      const weights = tensors('student')
      const decoder = await decoderOf(config)
      const learner = await Learner.create(config, { threads: 2, tokensPerPass: 64 })
      const requests = [3, 1, 11, 6].map((length, number) => {
        const prompt = Int32Array.from({ length }, (_, i) => (number * 31 + i * 17) % config.vocabularySize)
        return request(prompt, number)
      })
      const sampling = { ...GREEDY, maxNewTokens: 24 }
      const together = await decoder.generate(weights, requests, sampling)
      for (const [number, each] of requests.entries()) {
        await checkGreedy(config, learner, weights, each, together[number]!)
        assert.deepEqual((await decoder.generate(weights, [each], sampling))[0], together[number])
      }
      await learner.close()
    })
  })
}

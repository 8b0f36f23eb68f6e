import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { ModelConfig } from '../../../engine/architectures/config.ts'
import { Decoder, type DecoderOptions } from '../../../engine/decoding/decoder.ts'
import type { Request } from '../../../engine/decoding/row.ts'
import { Learner } from '../../../engine/learner/learner.ts'
import type { Generation, SamplingOptions } from '../../../engine/port.ts'
import { randomStream } from '../../../engine/sampling/random-stream.ts'
import { loadModelDirectory } from '../../../engine/weights/model-directory.ts'
import { headName } from '../../../engine/weights/parameter-shapes.ts'
import type { Weights } from '../../../engine/weights/weights.ts'
import { readGolden } from '../../golden/golden.ts'
import { makeTinyModel, type TinyModelOptions } from '../../helpers/tiny-model.ts'

const SAMPLING: SamplingOptions = {
  temperature: 1,
  topK: 0,
  topP: 1,
  minP: 0,
  stop: [],
  maxNewTokens: 20,
  seed: 1,
}
const NEVER: readonly number[] = []

const closing: (() => Promise<void>)[] = []
after(async () => {
  for (const close of closing) await close()
})

async function load(options: TinyModelOptions): Promise<{ config: ModelConfig; weights: Weights }> {
  const model = await makeTinyModel(options)
  const { config, weights } = await loadModelDirectory(model.path)
  await model.remove()
  return { config, weights }
}

async function decoderOf(config: ModelConfig, options: Partial<DecoderOptions> = {}) {
  const defaults = { threads: 2, tokensPerPass: 512, sequencesPerPass: 16, stopTokens: NEVER }
  const decoder = await Decoder.create(config, { ...defaults, ...options })
  closing.push(() => decoder.release())
  return decoder
}

/** Prompts of different lengths, by their number. */
function request(number: number, length = 3 + ((number * 7) % 40)): Request {
  return {
    key: `prompt ${number}`,
    prompt: Int32Array.from({ length }, (_, i) => (number * 31 + i * 17) % 250),
    random: randomStream({ seed: 1, key: String(number), policy: 0 }),
  }
}

const range = (count: number) => Array.from({ length: count }, (_, i) => i)

/** log-probabilities of a response by the graphs that training uses, in f64 from their logits. */
async function learnerLogp(
  config: ModelConfig,
  weights: Weights,
  prompt: Int32Array,
  { ids }: Generation,
): Promise<number[]> {
  const learner = await Learner.create(config, { threads: 2, tokensPerPass: 512 })
  const sequence = Int32Array.from([...prompt, ...ids.subarray(0, -1)])
  const [hidden] = await learner.hiddenStates(weights, [
    { ids: sequence, from: prompt.length - 1, count: ids.length },
  ])
  const logits = await learner.logits({ hidden: hidden!, head: weights.get(headName(config))! })
  await learner.close()
  const V = config.vocabularySize
  return Array.from(ids, (id, t) => {
    const row = logits.subarray(t * V, (t + 1) * V)
    return row[id]! - Math.log(row.reduce((sum, logit) => sum + Math.exp(logit), 0))
  })
}

for (const options of [
  { headDim: 16 },
  { headDim: 8, keyValueHeads: 1, tiedHead: false },
  { headDim: 24, layers: 3 },
]) {
  test(`what is decoded step by step is what the training graphs see: ${JSON.stringify(options)}`, async () => {
    const { config, weights } = await load(options)
    const requests = range(5).map(number => request(number))
    // 16 tokens a pass: longer prompts are read in several.
    const decoder = await decoderOf(config, { tokensPerPass: 16 })
    const generations = await decoder.generate(weights, requests, SAMPLING)
    for (const [i, generation] of generations.entries()) {
      assert.equal(generation.ids.length, 20)
      const expected = await learnerLogp(config, weights, requests[i]!.prompt, generation)
      expected.forEach((logp, t) => {
        assert.ok(Math.abs(logp - generation.logp[t]!) < 2e-5, `${logp} ${generation.logp[t]}`)
      })
    }
  })
}

for (const name of ['llama-tied', 'llama-untied'] as const) {
  test(`log-probabilities equal PyTorch's: ${name}`, async () => {
    const { config, items, tensors } = await readGolden(name)
    const weights = tensors('student')
    const logits = tensors('logits')
    const decoder = await decoderOf(config)
    for (const [number, { prompt, response }] of items.entries()) {
      const golden = logits.get(String(number))!.data as Float32Array
      // The response token by token: each is the first token after the prompt and those before it.
      for (let t = 0; t < response.length; t++) {
        const row = golden.subarray(t * config.vocabularySize, (t + 1) * config.vocabularySize)
        const greedy = row.indexOf(Math.max(...row))
        const before = Int32Array.from([...prompt, ...response.subarray(0, t)])
        const [found] = await decoder.generate(weights, [{ ...request(0), prompt: before }], {
          ...SAMPLING,
          temperature: 0,
          maxNewTokens: 1,
        })
        assert.equal(found!.ids[0], greedy)
        const expected = row[greedy]! - Math.log(row.reduce((sum, logit) => sum + Math.exp(logit), 0))
        assert.ok(Math.abs(found!.logp[0]! - expected) < 1e-5)
      }
    }
  })
}

test('a response does not depend on its neighbours, nor on how many there may be, to the bit', async () => {
  // 600 > 512: the inner dimension takes more than one block of the matrix product.
  const { config, weights } = await load({ intermediateSize: 600, heads: 6, keyValueHeads: 2 })
  const decoder = await decoderOf(config, { sequencesPerPass: 64 })
  const numbers = [0, 1, 2, 5]
  const alone: Generation[] = []
  for (const number of numbers) alone.push(...(await decoder.generate(weights, [request(number)], SAMPLING)))
  for (const neighbours of [3, 17, 33, 64]) {
    for (const longest of [40, 200]) {
      const requests = range(neighbours).map(number =>
        numbers.includes(number) ? request(number) : request(number, 1 + ((number * 53) % longest)),
      )
      const together = await decoder.generate(weights, requests, SAMPLING)
      numbers.forEach((number, i) => {
        if (number < neighbours) assert.deepEqual(together[number], alone[i], `${number} of ${neighbours}`)
      })
    }
  }
  for (const sequencesPerPass of [1, 16, 17]) {
    const fewer = await decoderOf(config, { sequencesPerPass })
    assert.deepEqual(await fewer.generate(weights, [request(5), request(0)], SAMPLING), [alone[3], alone[0]])
  }
})

test('each weights are decoded with themselves, also after others', async () => {
  const [first, second] = [await load({ seed: 1 }), await load({ seed: 2 })]
  const decoder = await decoderOf(first.config)
  const found: Generation[][] = []
  for (const { weights } of [first, second, first, first]) {
    found.push(await decoder.generate(weights, [request(1), request(2)], SAMPLING))
  }
  const [one, two, ...again] = found
  assert.notDeepEqual(two, one)
  assert.deepEqual(again, [one, one])
  assert.deepEqual(
    await (await decoderOf(first.config)).generate(second.weights, [request(1), request(2)], SAMPLING),
    two,
  )

  // What is written over is packed again once the decoder was told.
  const name = headName(first.config)
  const [kept, other] = [first.weights, second.weights].map(
    weights => weights.get(name)!.data as Float32Array,
  )
  const before = kept!.slice()
  await Promise.all([decoder.forget(), decoder.forget()])
  kept!.set(other!)
  assert.notDeepEqual(await decoder.generate(first.weights, [request(1), request(2)], SAMPLING), one)
  await decoder.forget()
  kept!.set(before)
  assert.deepEqual(await decoder.generate(first.weights, [request(1), request(2)], SAMPLING), one)
})

for (const shape of [
  { heads: 4, keyValueHeads: 2, headDim: 32 },
  { heads: 8, keyValueHeads: 1, headDim: 32 },
  { heads: 1, keyValueHeads: 1, headDim: 64 },
  { heads: 2, keyValueHeads: 1, headDim: 256 },
  { heads: 14, keyValueHeads: 2, headDim: 64 },
]) {
  test(`nor on the number of threads, nor with them on its neighbours: ${JSON.stringify(shape)}`, async () => {
    const options = { hiddenSize: 128, intermediateSize: 384, contextLength: 1024, ...shape }
    const { config, weights } = await load(options)
    // Long enough for attention to add in several blocks.
    const requests = [20, 700, 130, 1, 300].map((length, number) => request(number, length))
    const sampling = { ...SAMPLING, maxNewTokens: 24 }
    let expected: Generation[] | undefined
    for (const threads of [1, 2, 3, 4, 7]) {
      const decoder = await decoderOf(config, { threads })
      const together = await decoder.generate(weights, requests, sampling)
      expected ??= together
      assert.deepEqual(together, expected, `${threads} threads`)
      for (const [number, each] of requests.entries()) {
        const [alone] = await decoder.generate(weights, [each], sampling)
        assert.deepEqual(alone, expected[number], `${number} alone, ${threads} threads`)
      }
    }
  })
}

test('rows that end make room for others, and every result is in its place', async () => {
  const { config, weights } = await load({})
  const stopTokens = range(25)
  const decoder = await decoderOf(config, { sequencesPerPass: 3, stopTokens })
  const requests = range(20).map(number => request(number))
  const together = await decoder.generate(weights, requests, { ...SAMPLING, maxNewTokens: 12 })
  const lengths = new Set(together.map(({ ids }) => ids.length))
  assert.ok(lengths.size > 4, 'the responses should end at different lengths')
  for (const [i, single] of requests.entries()) {
    const [alone] = await decoder.generate(weights, [single], { ...SAMPLING, maxNewTokens: 12 })
    assert.deepEqual(together[i], alone)
  }
  for (const { ids, finish, logp } of together) {
    const stops = Array.from(ids, id => stopTokens.includes(id))
    // The stop token belongs to the response; nothing follows it.
    assert.equal(stops.indexOf(true), finish === 'stop' ? ids.length - 1 : -1)
    if (finish === 'length') assert.equal(ids.length, 12)
    assert.equal(logp.length, ids.length)
  }
  assert.ok(
    together.some(({ finish }) => finish === 'stop') && together.some(({ finish }) => finish === 'length'),
  )
})

test('weights may change from call to call, and lengths too', async () => {
  const first = await load({ seed: 1 })
  const second = await load({ seed: 2 })
  const decoder = await decoderOf(first.config)
  const requests = [request(1), request(2)]
  const before = await decoder.generate(first.weights, requests, SAMPLING)
  const other = await decoder.generate(
    second.weights,
    range(9).map(number => request(number, 50)),
    {
      ...SAMPLING,
      maxNewTokens: 60,
    },
  )
  assert.equal(other[8]!.ids.length, 60)
  assert.notDeepEqual(await decoder.generate(second.weights, requests, SAMPLING), before)
  assert.deepEqual(await decoder.generate(first.weights, requests, SAMPLING), before)
})

test('a response may fill the context to its last token, and no further', async () => {
  const { config, weights } = await load({ contextLength: 64 })
  const decoder = await decoderOf(config)
  const [full] = await decoder.generate(weights, [request(0, 44)], SAMPLING)
  assert.equal(full!.ids.length, 20)
  await assert.rejects(decoder.generate(weights, [request(1, 3), request(0, 45)], SAMPLING), {
    code: 'PROMPT_TOO_LONG',
    message: /prompt of prompt 0 has 45 tokens; with 20 new ones it exceeds the model's context of 64/,
  })
  await assert.rejects(decoder.generate(weights, [request(0, 0)], SAMPLING), { code: 'PROMPT_INVALID' })
  assert.deepEqual(await decoder.generate(weights, [], SAMPLING), [])
})

test('prompts that begin alike give the bits that each gives alone', async () => {
  const { config, weights } = await load({ intermediateSize: 600, contextLength: 512 })
  const END = 249
  const decoder = await decoderOf(config, { stopTokens: [END] })
  /** A first message of 50 tokens, then 200 in common, then the prompt's own. */
  const prompts = range(6).map(number => {
    const own = request(number, 1 + number * 23)
    const common = range(250).map(i => (i === 49 ? END : (i * 13) % END))
    const prompt = Int32Array.from([...common.slice(0, number === 3 ? 60 : 250), ...own.prompt])
    return { ...own, prompt }
  })
  const alone: Generation[] = []
  for (const each of prompts) alone.push(...(await decoder.generate(weights, [each], SAMPLING)))
  assert.deepEqual(await decoder.generate(weights, prompts, SAMPLING), alone)
  assert.deepEqual(await decoder.generate(weights, prompts.toReversed(), SAMPLING), alone.toReversed())
  // The same prompt again, with another stream.
  const other = randomStream({ seed: 2, key: 'other', policy: 0 })
  const again = await decoder.generate(weights, [prompts[2]!, { ...prompts[2]!, random: other }], SAMPLING)
  assert.deepEqual(again[0], alone[2])
  assert.notDeepEqual(again[1]!.ids, alone[2]!.ids)
})

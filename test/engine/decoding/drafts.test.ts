/** A draft decides over the number of steps and nothing else: responses and log-probabilities keep their bits. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { ModelConfig } from '../../../engine/architectures/config.ts'
import { Decoder, type DecoderOptions } from '../../../engine/decoding/decoder.ts'
import type { TextDraft } from '../../../engine/decoding/drafts.ts'
import { lookUp } from '../../../engine/decoding/prompt-lookup.ts'
import type { Request } from '../../../engine/decoding/row.ts'
import type { Generation, SamplingOptions } from '../../../engine/port.ts'
import { randomStream } from '../../../engine/sampling/random-stream.ts'
import { loadModelDirectory } from '../../../engine/weights/model-directory.ts'
import type { Weights } from '../../../engine/weights/weights.ts'
import { readGolden } from '../../golden/golden.ts'
import { makeTinyModel, type TinyModelOptions } from '../../helpers/tiny-model.ts'

const SAMPLING: SamplingOptions = {
  temperature: 1,
  topK: 0,
  topP: 1,
  minP: 0,
  stop: [],
  maxNewTokens: 40,
  seed: 1,
}

const NONE: TextDraft = () => ({ tokens: [], matched: 0 })

const closing: (() => Promise<void>)[] = []
after(async () => {
  for (const close of closing) await close()
})

interface Model {
  readonly config: ModelConfig
  readonly weights: Weights
}

async function load(options: TinyModelOptions): Promise<Model> {
  const model = await makeTinyModel({ contextLength: 512, ...options })
  const { config, weights } = await loadModelDirectory(model.path)
  await model.remove()
  return { config, weights }
}

/** Prompts end before, at and after the end of a block, and some beyond several: as far as there is room. */
function requests({ contextLength, vocabularySize }: ModelConfig, maxNewTokens: number): Request[] {
  return [3, 63, 64, 65, 120, 200, 30, 310, 7, 14]
    .filter(length => length + maxNewTokens <= contextLength)
    .map((length, number) => ({
      key: `${number}`,
      prompt: Int32Array.from({ length }, (_, i) => (number * 31 + i * 17) % Math.min(250, vocabularySize)),
      random: randomStream({ seed: 1, key: `${number}`, policy: 0 }),
    }))
}

/** What each prompt's response turned out to be. Prompts differ in their length. */
type Known = ReadonlyMap<number, Int32Array>

/** Knows the responses, but for one token of `wrong`. 0: all of them are right. */
function foretelling(known: Known, prompts: readonly Request[], wrong: number): TextDraft {
  return (sequence, most) => {
    const number = prompts.findIndex(({ prompt }) => prompt.every((id, i) => sequence[i] === id))
    const { length } = prompts[number]!.prompt
    const rest = known.get(number)!.subarray(sequence.length - length)
    const tokens = Array.from(rest.subarray(0, most), (id, i) => {
      const at = sequence.length + i
      return wrong > 0 && (at * 7 + number) % wrong === 0 ? (id + 1) % 7 : id
    })
    return { tokens, matched: 8 }
  }
}

/** Generations with a draft, and how often it was asked, which is how many tokens were not foretold. */
async function generate(
  { config, weights }: Model,
  prompts: readonly Request[],
  sampling: SamplingOptions,
  draft: TextDraft,
  options: Partial<DecoderOptions> = {},
): Promise<{ found: Generation[]; asked: number }> {
  let asked = 0
  const decoder = await Decoder.create(config, {
    threads: 2,
    tokensPerPass: 512,
    sequencesPerPass: 4,
    stopTokens: [],
    ...options,
    textDraft(...given) {
      asked++
      return draft(...given)
    },
  })
  closing.push(() => decoder.release())
  return { found: await decoder.generate(weights, prompts, sampling), asked }
}

async function check(
  model: Model,
  sampling: SamplingOptions,
  given: Partial<DecoderOptions> = {},
): Promise<void> {
  const prompts = requests(model.config, sampling.maxNewTokens)
  const { found: expected, asked: steps } = await generate(model, prompts, sampling, NONE, given)
  const known = new Map(expected.map(({ ids }, number) => [number, ids]))
  const tokens = expected.reduce((sum, { ids }) => sum + ids.length, 0)
  assert.equal(
    steps,
    tokens - expected.length,
    'without drafts, a step a token but for those that end the reading',
  )
  const right = foretelling(known, prompts, 0)
  for (const sequencesPerPass of [1, 3, 16, 17, 64]) {
    const { found, asked } = await generate(model, prompts, sampling, right, { ...given, sequencesPerPass })
    assert.deepEqual(found, expected, `right drafts, ${sequencesPerPass} sequences`)
    if (sequencesPerPass < 16) assert(asked < steps / 3, `${asked} of ${steps} steps`)
  }
  for (const wrong of [2, 3, 5]) {
    const { found } = await generate(model, prompts, sampling, foretelling(known, prompts, wrong), given)
    assert.deepEqual(found, expected, `every token of ${wrong} is foretold wrongly`)
  }
  const lengths: TextDraft = sequence => {
    const tokens = Array.from({ length: sequence.length % 5 }, (_, i) => i + 3)
    return { tokens, matched: 2 + (sequence.length % 7) }
  }
  assert.deepEqual(
    (await generate(model, prompts, sampling, lengths, given)).found,
    expected,
    'drafts of all lengths',
  )
}

describe('drafts change no bit of', () => {
  // 600 > 512: the inner dimension takes more than one block of the matrix product.
  const wide = { intermediateSize: 600, heads: 6, keyValueHeads: 2 }

  it('what is sampled', async () => check(await load(wide), SAMPLING))

  it('what is greedy', async () =>
    check(await load({ ...wide, scale: 0.3 }), { ...SAMPLING, temperature: 0 }))

  it('what top-k, top-p and min-p leave', async () =>
    check(await load(wide), { ...SAMPLING, temperature: 0.8, topK: 40, topP: 0.9, minP: 0.01 }))

  it('models whose heads share no keys', async () =>
    check(await load({ heads: 4, keyValueHeads: 4 }), SAMPLING))

  it('models with one head of keys', async () =>
    check(await load({ heads: 4, keyValueHeads: 1 }), SAMPLING, { threads: 3 }))

  it('models with sliding windows', async () => {
    const { config, tensors } = await readGolden('gemma2')
    assert(config.slidingWindow && config.slidingWindow.tokens < 12)
    await check({ config: { ...config, contextLength: 512 }, weights: tensors('student') }, SAMPLING)
  })
})

it('responses end where they would without drafts: at stop tokens, stop strings and the limit', async () => {
  const model = await load({ intermediateSize: 600 })
  const stopTokens = Array.from({ length: 12 }, (_, id) => id * 11)
  const watched = () => {
    const prompts = requests(model.config, SAMPLING.maxNewTokens)
    // As a stop string would, of two tokens: it has a memory of its own.
    return prompts.map((each, number) => {
      let before = -1
      const ends = (token: number) => {
        const found = number % 2 === 0 && before % 5 === 0 && token % 5 === 0
        before = token
        return found
      }
      return { ...each, ends }
    })
  }
  const { found: expected } = await generate(model, watched(), SAMPLING, NONE, { stopTokens })
  const known = new Map(expected.map(({ ids }, number) => [number, Int32Array.from([...ids, 1, 2, 3, 4])]))
  assert(
    expected.some(({ finish }) => finish === 'length') && expected.some(({ finish }) => finish === 'stop'),
  )
  for (const wrong of [0, 4]) {
    const draft = foretelling(known, requests(model.config, SAMPLING.maxNewTokens), wrong)
    assert.deepEqual((await generate(model, watched(), SAMPLING, draft, { stopTokens })).found, expected)
  }
})

it('several samples of a prompt, and prompts that begin alike, keep their bits', async () => {
  const model = await load({ intermediateSize: 600 })
  const [first, second] = requests(model.config, 40).filter(({ prompt }) => prompt.length >= 200)
  const begun = { ...second!, prompt: Int32Array.from([...first!.prompt, 7, 7, 7, 8]) }
  const given = [first!, first!, begun, first!, begun].map((each, sample) => ({
    ...each,
    random: randomStream({ seed: 1, key: each.key, policy: 0, sample }),
  }))
  const { found: expected } = await generate(model, given, SAMPLING, NONE)
  assert.notDeepEqual(expected[0], expected[1])
  for (const sequencesPerPass of [1, 4, 5]) {
    const { found } = await generate(model, given, SAMPLING, lookUp, { sequencesPerPass })
    assert.deepEqual(found, expected)
  }
})

it('what is repeated is foretold without being told', async () => {
  // Layers that add next to nothing to the embeddings: the likeliest token after one is itself.
  const model = await load({ scale: 0.005 })
  const greedy = { ...SAMPLING, temperature: 0, maxNewTokens: 120 }
  const [prompt] = requests(model.config, SAMPLING.maxNewTokens)
  const { found: expected } = await generate(model, [prompt!], greedy, NONE)
  const { found, asked } = await generate(model, [prompt!], greedy, lookUp)
  assert.deepEqual(found, expected)

  assert(asked < 60, `${asked} steps for 120 tokens`)
})

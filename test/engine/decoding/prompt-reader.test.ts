import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ForwardPasses, type PromptPart } from '../../../engine/decoding/forward-passes.ts'
import { KeyValueCache } from '../../../engine/decoding/key-value-cache.ts'
import { PromptReader } from '../../../engine/decoding/prompt-reader.ts'
import { loadModelDirectory } from '../../../engine/weights/model-directory.ts'
import { makeTinyModel, type TinyModelOptions } from '../../helpers/tiny-model.ts'

/** Wide enough that it does not matter which thread multiplies what. 600 is more than one block of a product. */
const WIDE = { hiddenSize: 128, intermediateSize: 600, heads: 4, keyValueHeads: 2, headDim: 64 }
const ROWS = 20

interface Found {
  /** Logits of each prompt, and its row of the cache, one array a tensor. */
  readonly logits: Float32Array[]
  readonly cached: Float32Array[][]
  /** How many prompts each pass read. */
  readonly sizes: number[]
}

/** Reads prompts, as many at a time as `calls` says. */
async function read(
  options: TinyModelOptions,
  threads: number,
  prompts: readonly Int32Array[],
  calls: readonly number[],
): Promise<Found> {
  const model = await makeTinyModel({ contextLength: 2048, ...options })
  const { config, weights } = await loadModelDirectory(model.path)
  await model.remove()
  const cache = new KeyValueCache(config)
  cache.reserve(ROWS, 1000)
  const passes = await ForwardPasses.create(config, { threads, cache })
  await passes.use(weights)
  const sizes: number[] = []
  const run = passes.read.bind(passes)
  passes.read = (parts: readonly PromptPart[], wanted) => {
    sizes.push(parts.length)
    return run(parts, wanted)
  }
  const reader = new PromptReader(config, passes, prompts, {
    tokensPerPass: 512,
    turnEnds: new Set([9]),
    check: () => {},
  })
  const logits: Float32Array[] = []
  for (const count of calls) {
    const numbers = Array.from({ length: count }, (_, i) => logits.length + i)
    logits.push(...(await reader.read(numbers, logits.length)))
  }
  const cached = prompts.map(({ length }, row) =>
    Object.values(cache.prefixes([row], length, 0)).map(({ data }) => data as Float32Array),
  )
  await passes.release()
  return { logits, cached, sizes }
}

function prompt(number: number, length: number, common = 0): Int32Array {
  return Int32Array.from({ length }, (_, i) => 10 + ((i < common ? i * 13 : number * 31 + i * 17) % 230))
}

const oneByOne = (prompts: readonly unknown[]) => prompts.map(() => 1)

test('prompts of one length are read together, and give the bits that each gives alone', async () => {
  const prompts = Array.from({ length: 7 }, (_, number) => prompt(number, 128))
  for (const threads of [1, 2, 3]) {
    const alone = await read(WIDE, threads, prompts, oneByOne(prompts))
    const together = await read(WIDE, threads, prompts, [7])
    assert.deepEqual(together.sizes, [7])
    assert.deepEqual([together.logits, together.cached], [alone.logits, alone.cached])
  }
})

test('of longer ones parts that are as far and as long go together, and the ends apart', async () => {
  const prompts = [300, 130, 300, 128, 300, 384].map((length, number) => prompt(number, length))
  const alone = await read(WIDE, 2, prompts, oneByOne(prompts))
  const together = await read(WIDE, 2, prompts, [6])
  // The first 128 of five and of the one that ends there; the next of four, an end of 2; then three ends of 44, one of 128.
  assert.deepEqual(together.sizes, [5, 1, 4, 1, 3, 1])
  assert.deepEqual([together.logits, together.cached], [alone.logits, alone.cached])
})

test('a pass sees no more tokens than its bound, however many prompts there are', async () => {
  const prompts = Array.from({ length: 18 }, (_, number) => prompt(number, 640))
  const { sizes } = await read({ ...WIDE, layers: 1 }, 2, prompts, [18])
  // 2,048 tokens: of 128 each, then 256, 384, 512 and 640.
  const fours = [4, 4, 4, 4, 2]
  assert.deepEqual(sizes, [16, 2, 8, 8, 2, 5, 5, 5, 3, ...fours, 3, 3, 3, 3, 3, 3])
})

test('what they begin with together is read once for all, and what is known is not read again', async () => {
  const prompts = [
    ...Array.from({ length: 4 }, (_, number) => prompt(number, 200, 128)),
    prompt(0, 200, 128),
    prompt(5, 200),
  ]
  const alone = await read(WIDE, 2, prompts, oneByOne(prompts))
  assert.deepEqual(
    alone.sizes,
    Array.from({ length: 7 }, () => 1),
  )
  for (const calls of [[6], [2, 4], [5, 1]]) {
    const together = await read(WIDE, 2, prompts, calls)
    assert.deepEqual([together.logits, together.cached], [alone.logits, alone.cached])
  }
  assert.deepEqual((await read(WIDE, 2, prompts, [6])).sizes, [2, 5])
})

test('also where there are fewer heads of keys than threads', async () => {
  // And a second pass of fewer query rows than there are keys.
  const shared = { ...WIDE, heads: 2, keyValueHeads: 1 }
  const prompts = [0, 1, 2, 3].map(number => prompt(number, 172))
  for (const threads of [2, 4]) {
    const alone = await read(shared, threads, prompts, oneByOne(prompts))
    const together = await read(shared, threads, prompts, [4])
    assert.deepEqual(together.sizes, [4, 4])
    assert.deepEqual([together.logits, together.cached], [alone.logits, alone.cached])
  }
})

test('a check that throws comes before the next pass, also between those of one prompt', async () => {
  const model = await makeTinyModel({ contextLength: 2048, ...WIDE })
  const { config, weights } = await loadModelDirectory(model.path)
  await model.remove()
  const cache = new KeyValueCache(config)
  cache.reserve(2, 500)
  const passes = await ForwardPasses.create(config, { threads: 1, cache })
  await passes.use(weights)
  let checks = 0
  const check = () => {
    if (++checks === 3) throw new Error('no longer wanted')
  }
  const prompts = [prompt(0, 500), prompt(1, 500)]
  const options = { tokensPerPass: 512, turnEnds: new Set<number>(), check }
  const reader = new PromptReader(config, passes, prompts, options)
  await assert.rejects(reader.read([0, 1], 0), /no longer wanted/)
  assert.equal(checks, 3)
  await passes.release()
})

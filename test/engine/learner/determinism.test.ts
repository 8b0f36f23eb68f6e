import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../../../engine/architectures/config.ts'
import { Learner, type LearnerOptions } from '../../../engine/learner/learner.ts'
import { initialAdapter } from '../../../engine/lora/initial-adapter.ts'
import { initialState } from '../../../engine/optimiser/adamw.ts'
import type { LoraOptions, TrainItem, UpdateOptions } from '../../../engine/port.ts'
import { EMBEDDING, parameterShapes } from '../../../engine/weights/parameter-shapes.ts'
import type { Weights } from '../../../engine/weights/weights.ts'
import { weightsHash } from '../../../engine/weights/weights-hash.ts'
import { size, uniform } from '../graph/finite-differences.ts'
import { factored } from './items.ts'

/** Large enough that onnxruntime gives every thread its share of each product. */
const config: ModelConfig = {
  architecture: 'llama',
  hiddenSize: 96,
  intermediateSize: 256,
  layers: 2,
  heads: 6,
  keyValueHeads: 2,
  headDim: 16,
  vocabularySize: 500,
  contextLength: 256,
  ropeTheta: 10_000,
  normEpsilon: 1e-5,
  tiedHead: true,
}

const window = { tokens: 40, layers: [false, true] }
const MODELS: readonly ModelConfig[] = [
  config,
  { ...config, architecture: 'qwen2', slidingWindow: window },
  { ...config, architecture: 'qwen3', headDim: 24 },
  {
    ...config,
    architecture: 'gemma2',
    normOffset: 1,
    embeddingScale: 3,
    attentionSoftCap: 2,
    logitSoftCap: 3,
    slidingWindow: window,
  },
]

const random = uniform(11)
function draftWeights(model: ModelConfig): Weights {
  const shapes = [...parameterShapes(model)].map(([name, shape]) => {
    const norm = name.endsWith('norm.weight')
    const data = Float32Array.from({ length: size(shape) }, () => (norm ? 1 : 0) + 0.2 * random())
    return [name, new Tensor('float32', data, shape)] as const
  })
  return new Map(shapes)
}
const draw = (length: number) =>
  Int32Array.from({ length }, () => Math.floor(((random() + 1) / 2) * config.vocabularySize))
// Short ones too: products wider than tall are where threads could matter.
const items: TrainItem[] = Array.from({ length: 10 }, (_, index) => {
  const [prompt, response] = [draw(1 + 15 * index), draw(2 + 9 * ((index * 3) % 10))]
  if (index % 2) return { loss: 'cross-entropy', prompt, response }
  const hidden = Float32Array.from({ length: response.length * config.hiddenSize }, random)
  return { loss: 'forward-kl', prompt, response, teacher: factored(hidden, config.hiddenSize) }
})

const update: UpdateOptions = {
  responses: items.length,
  learningRate: 1e-3,
  betas: [0.9, 0.99],
  epsilon: 1e-8,
  weightDecay: 0.1,
  clip: 1,
}

async function train(model: ModelConfig, base: Weights, options: LearnerOptions): Promise<string> {
  const learner = await Learner.create(model, options)
  const { lora } = options
  let adapter = lora && initialAdapter(model, lora)
  const state = initialState(adapter ?? base)
  let weights = base
  for (let step = 0; step < 3; step++) {
    await learner.accumulate(new Map([...weights, ...(adapter ?? [])]), base.get(EMBEDDING)!, items)
    if (adapter) ({ weights, adapter } = await learner.updateAdapter(base, adapter, state, update))
    else weights = learner.update(weights, state, update).weights
  }
  await learner.close()
  return weightsHash(weights)
}

for (const model of MODELS) {
  const weights = draftWeights(model)
  const run = (options: LearnerOptions) => train(model, weights, options)

  describe(`training ${model.architecture}`, () => {
    it('gives the same bits again, in a new session, and with 1 or 2 threads', async () => {
      const first = await run({ threads: 2, tokensPerPass: 512 })
      for (const threads of [2, 1]) assert.equal(await run({ threads, tokensPerPass: 512 }), first)
    })

    it('gives the same bits whether activations are kept or computed again', async () => {
      const kept = await run({ threads: 2, tokensPerPass: 1024 })
      assert.equal(await run({ threads: 2, tokensPerPass: 1024, activationBytes: 0 }), kept)
    })
  })
}

describe('training an adapter', () => {
  const weights = draftWeights(config)
  const lora: LoraOptions = { rank: 20, alpha: 8, rankStabilised: false, targets: ['all-linear'], seed: 2 }

  it('gives the same bits with 1 or 2 threads, and whether activations are kept or not', async () => {
    const first = await train(config, weights, { lora, threads: 2, tokensPerPass: 512 })
    assert.equal(await train(config, weights, { lora, threads: 1, tokensPerPass: 512 }), first)
    const again = { lora, threads: 2, tokensPerPass: 512, activationBytes: 0 }
    assert.equal(await train(config, weights, again), first)
  })
})

/**
 * Times training steps of random models: `node --import tsx bench/training-step.ts [lab|smollm2] [cross-entropy|forward-kl]`.
 * Environment: LORA (an adapter's rank), MOMENTS (f32 or bf16), THREADS, TOKENS (a pass), CHUNK (tokens a pass through the head), LAYERS, SEQUENCES, LENGTH (of each), STEPS, PROFILE (prefix of onnxruntime's profiles).
 */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../engine/architectures/config.ts'
import { Learner } from '../engine/learner/learner.ts'
import { initialAdapter } from '../engine/lora/initial-adapter.ts'
import { initialState } from '../engine/optimiser/adamw.ts'
import type { LoraOptions, TrainItem } from '../engine/port.ts'
import { parameterShapes } from '../engine/weights/parameter-shapes.ts'
import type { Weights } from '../engine/weights/weights.ts'
import { weightsHash } from '../engine/weights/weights-hash.ts'

const shared = {
  architecture: 'llama',
  contextLength: 2048,
  ropeTheta: 10000,
  normEpsilon: 1e-5,
  tiedHead: true,
} as const
const MODELS: Record<string, ModelConfig> = {
  lab: {
    ...shared,
    hiddenSize: 128,
    intermediateSize: 384,
    layers: 4,
    heads: 4,
    keyValueHeads: 4,
    headDim: 32,
    vocabularySize: 1000,
  },
  smollm2: {
    ...shared,
    hiddenSize: 576,
    intermediateSize: 1536,
    layers: 30,
    heads: 9,
    keyValueHeads: 3,
    headDim: 64,
    vocabularySize: 49152,
  },
}
const [name = 'lab', loss = 'cross-entropy'] = process.argv.slice(2)
const number = (variable: string, otherwise: number) => Number(process.env[variable] ?? otherwise)
const config = { ...MODELS[name]!, layers: number('LAYERS', MODELS[name]!.layers) }
const sequences = number('SEQUENCES', name === 'lab' ? 64 : 2)
const steps = number('STEPS', 4)

let seed = 1
const random = () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
  return seed / 2 ** 32
}
const normal = (length: number, scale: number) =>
  Float32Array.from({ length }, () => scale * (random() + random() + random() + random() - 2) * 1.7)
let weights: Weights = new Map(
  [...parameterShapes(config)].map(([key, shape]) => {
    const length = shape.reduce((product, dim) => product * dim, 1)
    return [
      key,
      new Tensor(
        'float32',
        shape.length === 1 ? new Float32Array(length).fill(1) : normal(length, 0.02),
        shape,
      ),
    ]
  }),
)
const ids = (length: number) =>
  Int32Array.from({ length }, () => Math.floor(random() * config.vocabularySize))
const items: TrainItem[] = Array.from({ length: sequences }, () => {
  const length = number('LENGTH', 180 + Math.floor(random() * 140))
  const split = loss === 'cross-entropy' ? 1 : length - 80
  const [prompt, response] = [ids(split), ids(length - split)]
  if (loss === 'cross-entropy') return { loss, prompt, response }
  const data = new Uint8Array(normal(response.length * config.hiddenSize, 1).buffer)
  const none = new Float32Array(0)
  return {
    loss: 'forward-kl',
    prompt,
    response,
    teacher: { encoding: 'factored', dtype: 'f32', width: config.hiddenSize, data, lse: none, logp: none },
  }
})
const tokens = items.reduce((sum, { prompt, response }) => sum + prompt.length + response.length, 0)
const rank = number('LORA', 0)
const lora: LoraOptions | undefined =
  rank > 0 ? { rank, alpha: 32, rankStabilised: false, targets: ['all-linear'], seed: 1 } : undefined
const learner = await Learner.create(config, {
  lora,
  threads: number('THREADS', 2),
  tokensPerPass: number('TOKENS', 2048),
  ...(process.env.CHUNK !== undefined && { chunkTokens: number('CHUNK', 0) }),
  ...(process.env.PROFILE !== undefined && { profile: process.env.PROFILE }),
})
const base = weights
let adapter = lora && initialAdapter(config, lora)
const state = initialState(adapter ?? weights, process.env.MOMENTS === 'bf16' ? 'bf16' : 'f32')
const head = weights.get('model.embed_tokens.weight')!
for (let step = 0; step < steps; step++) {
  const start = performance.now()
  const cpu = process.cpuUsage()
  const { losses } = await learner.accumulate(new Map([...weights, ...(adapter ?? [])]), head, items)
  const accumulated = performance.now()
  const options = {
    responses: items.length,
    learningRate: 1e-3,
    betas: [0.9, 0.99],
    epsilon: 1e-8,
    weightDecay: 0.1,
    clip: 1,
  } as const
  if (adapter) ({ weights, adapter } = await learner.updateAdapter(base, adapter, state, options))
  else weights = learner.update(weights, state, options).weights
  const end = performance.now()
  const used = process.cpuUsage(cpu)
  const mean = losses.reduce((sum, value) => sum + value, 0) / losses.length
  console.log(
    `${name} ${loss}: ${tokens} tokens, loss ${mean.toFixed(4)}, gradient ${(accumulated - start).toFixed(0)} ms, ` +
      `update ${(end - accumulated).toFixed(0)} ms, ${Math.round((tokens / (end - start)) * 1000)} tokens/s, CPU ${((used.user + used.system) / 1000).toFixed(0)} ms, ` +
      `${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MiB`,
  )
}
console.log(`weights ${weightsHash(weights).slice(0, 16)}`)
await learner.close()

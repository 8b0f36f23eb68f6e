/**
 * Pre-trains the lab's backbone from scratch with the project's own engine: cross-entropy on the answers of the
 * pre-training texts (corpus.ts), AdamW, linear warm-up and decay. The same settings give the same bytes.
 *
 *     node --import tsx examples/lab/pretrain.ts [--steps N] [--threads N] [--out DIRECTORY]
 *
 * Writes the model beside its tokenizer and the loss curve to DIRECTORY/pretraining.jsonl.
 */
import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Tensor } from 'onnxruntime-node'
import { Learner } from '../../engine/learner/learner.ts'
import { initialState } from '../../engine/optimiser/adamw.ts'
import type { TrainItem } from '../../engine/port.ts'
import { ChatTokenizer } from '../../engine/tokens/chat-tokenizer.ts'
import { readCompanions } from '../../engine/weights/companions.ts'
import { parseModelConfig } from '../../engine/weights/model-config.ts'
import { headName, parameterShapes } from '../../engine/weights/parameter-shapes.ts'
import type { Weights } from '../../engine/weights/weights.ts'
import { weightsHash } from '../../engine/weights/weights-hash.ts'
import { writeModel } from '../../engine/weights/write-model.ts'
import type { Corpus } from './corpus.ts'
import { openCorpus } from './corpus.ts'
import { BACKBONE, makeTokenizer, PROMPT } from './make-tokenizer.ts'
import { Random } from './world/random.ts'

const SEED = 7
const BATCH = 16
/** Steps on short texts, from the first. */
const SHORT = 1250
const RATE = 1.5e-3
const WARMUP = 50
/** The rate's end, as a share of its peak. */
const FLOOR = 0.05

/** config.json of the backbone. */
const MODEL = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_size: 128,
  intermediate_size: 384,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 32,
  vocab_size: 1536,
  max_position_embeddings: 512,
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  hidden_act: 'silu',
  attention_bias: false,
  mlp_bias: false,
  tie_word_embeddings: true,
  initializer_range: 0.02,
  bos_token_id: null,
  eos_token_id: 0,
  pad_token_id: 0,
}

const { values } = parseArgs({
  options: {
    steps: { type: 'string', default: '3250' },
    threads: { type: 'string', default: '2' },
    out: { type: 'string', default: BACKBONE },
  },
})
const steps = Number(values.steps)
const out = values.out

await mkdir(out, { recursive: true })
for (const [name, text] of Object.entries(await makeTokenizer())) await writeFile(join(out, name), text)
const config = parseModelConfig('the backbone’s configuration', MODEL)
const source = { path: out, companions: await readCompanions(out) }
const tokenizer = ChatTokenizer.load(source, MODEL, config.vocabularySize)
const corpus = await openCorpus(SEED, PROMPT, SHORT * BATCH)
const learner = await Learner.create(config, { threads: Number(values.threads), tokensPerPass: 4096 })

let weights = initialWeights()
const state = initialState(weights)
const curve = join(out, 'pretraining.jsonl')
await writeFile(curve, '')
const started = performance.now()
let sum = 0
let since = 0
for (let step = 0; step < steps; step++) {
  const items = await Promise.all(
    Array.from({ length: BATCH }, (_, i) => trainItem(corpus, step * BATCH + i)),
  )
  const { losses } = await learner.accumulate(weights, weights.get(headName(config))!, items)
  const learningRate = RATE * Math.min(1, (step + 1) / WARMUP) * (1 - (1 - FLOOR) * (step / steps))
  const updated = learner.update(weights, state, {
    responses: BATCH,
    learningRate,
    betas: [0.9, 0.98],
    epsilon: 1e-8,
    weightDecay: 0.01,
    clip: 1,
  })
  weights = updated.weights
  sum += losses.reduce((a, b) => a + b) / BATCH
  since++
  if ((step + 1) % 50 === 0 || step + 1 === steps) {
    const loss = Number((sum / since).toFixed(4))
    const line = JSON.stringify({ step: step + 1, loss, learningRate: Number(learningRate.toPrecision(4)) })
    await appendFile(curve, `${line}\n`)
    const seconds = Math.round((performance.now() - started) / 1000)
    process.stdout.write(`step ${step + 1} of ${steps}, loss ${loss}, ${seconds} s\n`)
    sum = 0
    since = 0
  }
  if ((step + 1) % 250 === 0 || step + 1 === steps) await save()
}
await learner.close()
process.stdout.write(`weights ${weightsHash(weights)}\n`)

async function save(): Promise<void> {
  await writeModel(out, { rawConfig: MODEL, companions: await readCompanions(out) }, weights, 'f32')
}

async function trainItem(corpus: Corpus, index: number): Promise<TrainItem> {
  const { messages, answer } = await corpus.example(index)
  const prompt = tokenizer.encodeChat(messages)
  // The chat with its answer, without the assistant's turn that the template opens after it.
  const whole = tokenizer.encodeChat([...messages, { role: 'assistant', content: answer }]).slice(0, -1)
  return { loss: 'cross-entropy', prompt, response: whole.slice(prompt.length) }
}

/** Norms of one; matrices normal with deviation 0.02, those that write to the residual stream less (GPT-2). */
function initialWeights(): Weights {
  const made = new Map<string, Tensor>()
  for (const [name, shape] of parameterShapes(config)) {
    const data = new Float32Array(shape.reduce((a, b) => a * b, 1))
    if (shape.length === 1) {
      data.fill(1)
    } else {
      const random = new Random(`${SEED}/${name}`)
      const writes = name.endsWith('o_proj.weight') || name.endsWith('down_proj.weight')
      const deviation = 0.02 / (writes ? Math.sqrt(2 * config.layers) : 1)
      for (let i = 0; i < data.length; i++) data[i] = deviation * normal(random)
    }
    made.set(name, new Tensor('float32', data, [...shape]))
  }
  return made
}

/** Box and Muller. */
function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.unit())) * Math.cos(2 * Math.PI * random.unit())
}

/**
 * The configuration of a run: its schema is the one place that says which keys there are, what they mean,
 * what they may be and what they are by default. Error messages, `grasp init` and the type follow from it.
 */
import { availableParallelism } from 'node:os'
import { z } from 'zod'
import { count, file, fraction, name, outputFolder, section } from './fields.ts'
import { log } from './log.ts'
import { samplingKeys } from './sampling.ts'
import { training } from './training.ts'

const output = section('What the run leaves behind: checkpoints, the best policy, metrics.jsonl.', {
  path: outputFolder().optional().describe('Folder; by default .grasp/<run>.'),
  url: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('Where the folder `policies` in it is served, for stages on machines that do not share it.'),
})

const model = z
  .strictObject({
    path: file().describe(
      'A Hugging Face directory (config.json, *.safetensors, tokenizer.json) or a GGUF file; `grasp pull` fetches one.',
    ),
    device: z
      .enum(['cpu', 'webgpu', 'cuda'])
      .default('cpu')
      .describe('Where the model runs: the CPU, a GPU through WebGPU, or one through CUDA. See docs/gpu.md.'),
    threads: count(1)
      .max(1024)
      .default(() => availableParallelism())
      .describe('Threads of the engine; by default one a core.'),
    tokensPerPass: count(1)
      .default(4096)
      .describe('Most tokens (padding included) in one training or scoring pass; bounds memory.'),
    sequencesPerPass: count(1).default(32).describe('Most sequences that are decoded together.'),
  })
  .describe('The language model: the teacher is its weights as they are, the student starts from them.')

const engine = section('The process that runs the model.', {
  restarts: count(0)
    .max(1000)
    .default(5)
    .describe(
      'Deaths of it (a crash, want of memory, a hang) that a command recovers from, within an hour or without anything gained in between.',
    ),
  hangSeconds: count(1)
    .max(86_400)
    .default(900)
    .describe(
      'Seconds without a sign of life, which comes after each graph, until it is taken to hang and killed.',
    ),
})

const data = z
  .strictObject({
    train: file().describe('Questions to train on: LaMP-QA items in a JSON array or in JSON lines.'),
    validation: file().optional().describe('Questions that choose the best policy.'),
    test: file().optional().describe('Held-out questions that the result is measured on.'),
    limit: section('Take only the first items of a split.', {
      train: count(1).optional().describe('Most training items; all by default.'),
      validation: count(1).optional().describe('Most validation items; all by default.'),
      test: count(1).optional().describe('Most test items; all by default.'),
    }),
    maxPostBytes: count(1)
      .default(1024 * 1024)
      .describe('A post longer than this (bytes of UTF-8) condemns its item.'),
  })
  .describe('The data, in the format of LaMP-QA.')

const dense = z
  .strictObject({
    model: file().describe('A directory of an ONNX embedding model, as transformers.js reads it.'),
    pooling: z.enum(['mean', 'cls']).default('mean').describe('How token embeddings become one.'),
    normalise: z
      .boolean()
      .default(false)
      .describe('Scale embeddings to length 1, so that their dot product is the cosine.'),
    queryPrefix: z.string().default('').describe('Put before each question.'),
    passagePrefix: z.string().default('').describe('Put before each post.'),
    batch: count(1)
      .default(1)
      .describe(
        'Texts embedded together; with more than 1, an int8 model gives a text other values in other company.',
      ),
    dtype: z
      .enum(['fp32', 'fp16', 'q8', 'int8', 'uint8', 'q4', 'q4f16'])
      .default('fp32')
      .describe("Which of the model's ONNX files to use."),
    maxTokens: count(1)
      .optional()
      .describe('Tokens of a text that are read; by default all the model takes.'),
  })
  .describe('The embedding model; only for kind `dense`.')

const retrieval = section('Which posts of a profile a prompt shows.', {
  kind: z.enum(['bm25', 'dense']).default('bm25').describe('`bm25` needs no model; `dense` embeds.'),
  topK: count(1).default(10).describe('Most posts in a prompt.'),
  dense: dense.optional(),
}).superRefine((value, context) => {
  if (value.kind === 'dense' && value.dense === undefined) {
    context.addIssue({ code: 'custom', path: ['dense'], message: 'is missing, but retrieval.kind is dense' })
  }
})

const judge = z
  .discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('lexical').describe('`lexical`: by words, deterministic, needs no model.'),
      key: file().optional().describe('A file of the words that satisfy each aspect.'),
    }),
    z.strictObject({
      kind: z.literal('chat').describe('`chat`: a model behind an OpenAI-compatible server.'),
      url: z
        .url({ protocol: /^https?$/ })
        .describe('Base URL of the server, such as http://127.0.0.1:8000/v1.'),
      model: z.string().min(1).describe("The model's name at the server."),
      prompt: file().optional().describe("The judge's prompt file; by default the package's own."),
      apiKeyEnv: z.string().min(1).optional().describe('Environment variable that holds the API key.'),
      apiKeyFile: file().optional().describe('File that holds the API key.'),
      allowInsecure: z
        .boolean()
        .default(false)
        .describe("Allow http to another machine: users' posts and the key then travel in clear."),
      maxTokens: count(1)
        .default(1024)
        .describe('Longest reply of the judge, in tokens, reasoning included.'),
      timeoutMs: count(1).default(60_000).describe('Longest wait for a verdict, milliseconds.'),
      concurrency: count(1).max(1024).default(8).describe('Most verdicts asked for at the same time.'),
      retries: count(0).max(100).default(3).describe('Further tries of a verdict that failed.'),
      compatibility: z
        .literal('lamp-qa')
        .optional()
        .describe('`lamp-qa` counts a failed verdict as 0, as the benchmark does; otherwise it is unscored.'),
    }),
  ])
  .describe('Who says whether a response covers an aspect (0, 1 or 2).')

const validation = section("RTV: the teacher's answer decides whether a question is trained on.", {
  tau: fraction().default(1).describe("Least score of the teacher's answer."),
  ...samplingKeys(1),
  batch: count(1).default(64).describe('Answers generated together.'),
})

const rollout = section('How the student samples the responses that it learns from.', {
  ...samplingKeys(1),
  lag: count(0)
    .max(1000)
    .default(0)
    .describe('Batch b is sampled with policy version max(0, b - lag); 0 is strictly on-policy.'),
})

const scoring = section('How the paired distributions of student and teacher are written to the log.', {
  encoding: z
    .enum(['factored', 'dense', 'topk'])
    .default('factored')
    .describe(
      '`factored`: hidden states (exact, small); `dense`: the whole vocabulary; `topk`: approximate.',
    ),
  dtype: z.enum(['f32', 'f16', 'bf16']).default('f32').describe('Number format of the distributions.'),
  k: count(1).default(64).describe('Only for `topk`: tokens kept.'),
  sliceBytes: count(1024)
    .default(768 * 1024)
    .describe('Largest slice; a response with more is cut into several.'),
})

const evaluation = section('Answers to held-out questions, judged.', {
  every: count(0).default(0).describe('Updates between validations; 0: only at the end.'),
  ...samplingKeys(0),
  batch: count(1).default(64).describe('Answers generated together.'),
})

const credits = section('How much may be in flight between a topic and the stage that reads it.', {
  records: count(1).default(256).describe('Records.'),
  bytes: count(1)
    .default(64 * 1024 * 1024)
    .describe('Bytes.'),
})

/** What a slice holds besides its distributions (token ids, numbers a token), bytes. */
const SLICE_OVERHEAD = 256 * 1024

export const configSchema = z
  .strictObject({
    run: name().describe("The run's name: letters, digits, dot, hyphen, underscore; names its folder."),
    log,
    output,
    model,
    engine,
    data,
    retrieval,
    prompt: file()
      .optional()
      .describe("The prompt file of student and teacher; by default the package's own."),
    judge,
    validation,
    rollout,
    scoring,
    training,
    evaluation,
    credits,
  })
  .superRefine(({ log, scoring }, context) => {
    const largest = log.maxMessageBytes - SLICE_OVERHEAD
    if (log.kind !== 'kafka' || scoring.sliceBytes <= largest) return
    const message = `is more than log.maxMessageBytes allows, which is ${largest} and what else a slice holds`
    context.addIssue({ code: 'custom', path: ['scoring', 'sliceBytes'], message })
  })
  .superRefine(({ model, training }, context) => {
    if (model.device === 'cpu' || training.optimiserState === 'f32') return
    const message = `${training.optimiserState} is for model.device cpu; with ${model.device} it must be f32`
    const params = { complete: true }
    context.addIssue({ code: 'custom', path: ['training', 'optimiserState'], message, params })
  })

type Parsed = z.output<typeof configSchema>

/** A complete configuration: every default filled in, every path absolute. */
export interface Config extends Parsed {
  readonly log: Parsed['log'] & { readonly path: string }
  readonly output: Parsed['output'] & { readonly path: string }
  readonly prompt: string
}

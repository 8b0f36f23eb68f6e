/** Whether a configuration, its model, its data and its folders can be used. */
import { constants, existsSync } from 'node:fs'
import { access, stat, statfs } from 'node:fs/promises'
import { freemem } from 'node:os'
import { dirname } from 'node:path'
import { factorShapes } from '../../engine/lora/adapter.ts'
import { ChatTokenizer } from '../../engine/tokens/chat-tokenizer.ts'
import { loadModelDirectory } from '../../engine/weights/model-directory.ts'
import { readModelFiles } from '../../engine/weights/model-files.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Config } from '../../pipelines/config/config.ts'
import { readLampQa } from '../../pipelines/data/lampqa.ts'
import { loraOptions, openJudge, openRetriever } from '../../pipelines/resources.ts'
import { loadPrompt } from '../../prompts/prompt.ts'
import { type Check, check, size } from './check.ts'
import { kafkaChecks } from './kafka.ts'

const SPLITS = ['train', 'validation', 'test'] as const

type Split = (typeof SPLITS)[number]

export async function configurationChecks(load: () => Promise<Config>): Promise<Check[]> {
  let config: Config | undefined
  const checks = [
    await check('configuration', async () => {
      config = await load()
      return `run ${config.run}`
    }),
  ]
  if (config === undefined) return checks
  const { model, data, log, output, prompt } = config
  const loaded = config
  checks.push(await check('model', () => describeModel(loaded)))
  checks.push(await check('tokenizer', () => describeTokenizer(model.path)))
  for (const split of SPLITS) {
    const file = data[split]
    if (file !== undefined) checks.push(await check(`data.${split}`, () => describeData(file, split, loaded)))
  }
  checks.push(
    await check('prompt', async () => `${prompt}, sha256 ${(await loadPrompt(prompt)).hash.slice(0, 12)}…`),
  )
  checks.push(await check('judge', async () => describeJudge(loaded)))
  checks.push(await check('retriever', async () => describeRetriever(loaded)))
  if (log.kind === 'kafka') checks.push(...(await kafkaChecks(loaded)))
  else checks.push(await check('log.path', () => describeFolder(log.path)))
  checks.push(await check('output.path', () => describeFolder(output.path)))
  return checks
}

const count = (value: number) => value.toLocaleString('en')

async function describeModel({ model: { path }, training }: Config): Promise<string> {
  const { config, weights } = await loadModelDirectory(path)
  const parameters = [...weights.values()].reduce((sum, { data }) => sum + data.length, 0)
  const lora = loraOptions(training)
  const trained = lora
    ? [...factorShapes(config, lora).values()].reduce((sum, [rows, columns]) => sum + rows! * columns!, 0)
    : parameters
  // Weights of student and teacher in f32; of what is trained, gradients in f32 and two moments.
  const needed = parameters * 4 * 2 + trained * (4 + 2 * (training.optimiserState === 'f32' ? 4 : 2))
  if (needed > freemem()) {
    throw new GraspError(
      'MODEL_UNSUPPORTED',
      `${path}: training ${count(trained)} parameters takes about ${size(needed)} and more for activations, but ${size(freemem())} are free`,
    )
  }
  return (
    `${config.architecture}, ${count(parameters)} parameters, ${config.layers} layers of ` +
    `${config.hiddenSize}, vocabulary ${config.vocabularySize}, context ${config.contextLength}; training ${count(trained)} of them takes about ${size(needed)} and activations`
  )
}

async function describeTokenizer(path: string): Promise<string> {
  const model = await readModelFiles(path)
  const tokenizer = ChatTokenizer.load(model, model.rawConfig, model.config.vocabularySize)
  const ids = tokenizer.encodeChat([{ role: 'user', content: 'Hello' }])
  return `loads; a chat of one word has ${ids.length} tokens`
}

async function describeJudge(config: Config): Promise<string> {
  const judge = await openJudge(config)
  return `${config.judge.kind}, hash ${judge.hash.slice(0, 12)}…`
}

async function describeRetriever(config: Config): Promise<string> {
  const retriever = await openRetriever(config)
  await retriever.close()
  return `${config.retrieval.kind}, top ${config.retrieval.topK}, hash ${retriever.hash.slice(0, 12)}…`
}

/** Reads every item, as `grasp ingest` would: a file of another format has lines too, but none of them is an item. */
async function describeData(file: string, split: Split, { data }: Config): Promise<string> {
  const { maxPostBytes, limit } = data
  const last = limit[split] ?? Number.POSITIVE_INFINITY
  let [right, wrong] = [0, 0]
  let first: GraspError | undefined
  for await (const { item, error } of readLampQa(file, { split, maxPostBytes })) {
    if (item > last) continue // read on, since the file may be cut off
    if (error === undefined) right += 1
    else wrong += 1
    first ??= error
  }
  if (right === 0) {
    const what =
      first === undefined
        ? 'it holds no items'
        : `none of its items can be used, the first: ${messageOf(first, file)}`
    throw new GraspError(
      'DATA_INVALID',
      `${file}: ${what}. Expected a JSON array of items, or one item a line`,
    )
  }
  const items = `${right} item${right === 1 ? '' : 's'} in ${file}`
  return wrong === 0 ? items : `${items}; ${wrong} would be left out, the first: ${messageOf(first!, file)}`
}

/** Without the file's name, which stands there already. */
function messageOf({ message }: GraspError, file: string): string {
  return message.startsWith(`${file}: `) ? message.slice(file.length + 2) : message
}

/** The folder, or the nearest one above it that exists, must be writable. */
async function describeFolder(path: string): Promise<string> {
  let there = path
  while (!existsSync(there) && dirname(there) !== there) there = dirname(there)
  if (!(await stat(there)).isDirectory())
    throw new GraspError('LOG_UNAVAILABLE', `${there} is a file; expected a folder`)
  try {
    await access(there, constants.W_OK)
  } catch {
    throw new GraspError(
      'LOG_UNAVAILABLE',
      `${path}: ${there} is not writable; change its permissions or name another folder`,
    )
  }
  const { bavail, bsize } = await statfs(there)
  if (bavail === 0)
    throw new GraspError('LOG_UNAVAILABLE', `${path}: there is no space in ${there}; name another folder`)
  return `${path}${there === path ? '' : ' (will be made)'}, ${size(bavail * bsize)} free`
}

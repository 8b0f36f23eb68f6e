/** Whether a configuration, its model, its data and its folders can be used. */
import { constants, existsSync } from 'node:fs'
import { access, stat, statfs } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { dirname } from 'node:path'
import type { ModelConfig } from '../../engine/architectures/config.ts'
import type { DeviceReport } from '../../engine/devices/device.ts'
import { size } from '../../engine/devices/size.ts'
import { type Fit, fitOf, type Saving, savings } from '../../engine/memory/fit.ts'
import { parameterCount } from '../../engine/memory/parameter-count.ts'
import type { MemorySettings } from '../../engine/memory/settings.ts'
import { ChatTokenizer } from '../../engine/tokens/chat-tokenizer.ts'
import { firstNonFinite } from '../../engine/weights/finite.ts'
import { loadModelDirectory } from '../../engine/weights/model-directory.ts'
import { readModelFiles } from '../../engine/weights/model-files.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Config } from '../../pipelines/config/config.ts'
import { readLampQa } from '../../pipelines/data/lampqa.ts'
import { loraOptions, openJudge, openRetriever } from '../../pipelines/resources.ts'
import { checkResponseRoom } from '../../pipelines/response-room.ts'
import { loadPrompt } from '../../prompts/prompt.ts'
import { type Check, check } from './check.ts'
import { kafkaChecks } from './kafka.ts'

const SPLITS = ['train', 'validation', 'test'] as const

type Split = (typeof SPLITS)[number]

/** What a model and its settings take of a device's memory. */
export interface ModelMemory {
  readonly device: string
  /** Bytes; absent where it is not known. */
  readonly free?: number
  /** Tokens. */
  readonly context: number
  readonly fit: Fit
  /** Settings that take less. */
  readonly savings: readonly Saving[]
}

export interface ConfigurationReport {
  readonly checks: readonly Check[]
  /** Absent where the model cannot be read. */
  readonly memory?: ModelMemory
}

/** @param freeOf bytes of a device's memory, undefined where it is not known */
export async function configurationReport(
  load: () => Promise<Config>,
  devices: readonly DeviceReport[],
  freeOf: (device: string) => number | undefined,
): Promise<ConfigurationReport> {
  let config: Config | undefined
  let memory: ModelMemory | undefined
  const checks = [
    await check('configuration', async () => {
      config = await load()
      return `run ${config.run}`
    }),
  ]
  if (config === undefined) return { checks }
  const { model, data, log, output, prompt } = config
  const loaded = config
  const free = freeOf(model.device)
  if (model.device !== 'cpu')
    checks.push(await check('model.device', () => describeDevice(model.device, devices)))
  const cores = availableParallelism()
  if (model.threads > cores)
    checks.push(await check('model.threads', () => tooManyThreads(model.threads, cores)))
  checks.push(
    await check('model', async () => {
      const { config: shape } = await readModelFiles(model.path)
      checkResponseRoom(loaded, shape.contextLength)
      memory = memoryOf(loaded, shape, free)
      return describeModel(loaded, memory)
    }),
  )
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
  return { checks, ...(memory && { memory }) }
}

function tooManyThreads(threads: number, cores: number): never {
  throw new GraspError(
    'CONFIG_INVALID',
    `${threads} threads would wait for each other, since ${cores} cores are usable here; expected at most so many`,
  )
}

function describeDevice(wanted: string, devices: readonly DeviceReport[]): string {
  const device = devices.find(({ provider }) => provider === wanted)
  if (device?.state === 'works') return `${wanted}${device.name === undefined ? '' : `, ${device.name}`}`
  throw new GraspError(
    'CONFIG_INVALID',
    `${wanted} cannot be used: ${device?.detail ?? 'it is not known here'}`,
  )
}

function memoryOf(config: Config, shape: ModelConfig, free: number | undefined): ModelMemory {
  const { model, rollout, training } = config
  const lora = loraOptions(training)
  const settings: MemorySettings = {
    tokensPerPass: model.tokensPerPass,
    sequencesPerPass: model.sequencesPerPass,
    keepPolicies: rollout.lag,
    optimiserState: training.optimiserState,
    responseTokens: rollout.maxNewTokens,
    scoredTogether: training.batch,
    trainedTogether: Math.min(training.batch, training.microbatch),
    packed: model.device === 'cpu',
    ...(lora && { lora }),
  }
  const fit = fitOf(shape, settings, free ?? Number.POSITIVE_INFINITY)
  return {
    device: model.device,
    ...(free !== undefined && { free }),
    context: shape.contextLength,
    fit,
    // Devices hold moments in f32 alone.
    savings: savings(shape, settings, fit.length).filter(
      ({ setting }) => model.device === 'cpu' || !setting.startsWith('training.optimiserState'),
    ),
  }
}

const count = (value: number) => value.toLocaleString('en')

/** Reads the weights too, once it is known that there is room for them. */
async function describeModel({ model: { path }, training }: Config, memory: ModelMemory): Promise<string> {
  const trained = (shape: ModelConfig) => parameterCount(shape, loraOptions(training)).trained
  const { device, free, fit } = memory
  if (free !== undefined && fit.longest.training === 0) {
    const { config: shape } = await readModelFiles(path)
    throw new GraspError(
      'MODEL_UNSUPPORTED',
      `${path}: training ${count(trained(shape))} parameters takes about ${size(fit.use.training.bytes)}, but ` +
        `${size(free)} are free on ${device}; what takes less is below`,
    )
  }
  const { config: shape, weights } = await loadModelDirectory(path)
  const odd = firstNonFinite(weights)
  if (odd) {
    throw new GraspError(
      'MODEL_INVALID',
      `${path}: ${odd.name} holds ${count(odd.count)} values that are infinite or no numbers; whatever is made of ` +
        'the model would be too. Fetch it again, or go back to a checkpoint before its training diverged.',
    )
  }
  const { all } = parameterCount(shape)
  const some = trained(shape)
  return (
    `${shape.architecture}, ${count(all)} parameters${some === all ? '' : `, ${count(some)} of them trained`}, ` +
    `${shape.layers} layers of ${shape.hiddenSize}, vocabulary ${shape.vocabularySize}, context ${shape.contextLength}`
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

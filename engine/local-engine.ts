/**
 * The engine in this process, on the CPU or a device (backend.ts). Its calls run one after the other, but for those that
 * touch no weights: they are answered between two passes of the one that runs. While onnxruntime works, the JavaScript
 * thread is blocked, so a pipeline keeps its engine in another process (process/proxy.ts).
 */
import { GraspError } from '../errors/grasp-error.ts'
import { openDeviceBackend } from './accelerator/device-backend.ts'
import type { ModelConfig } from './architectures/config.ts'
import type { Backend, BackendOptions, Held, Scorer } from './backend.ts'
import { checkIds } from './check-ids.ts'
import { openCpuBackend } from './cpu-backend.ts'
import { Policies } from './policies.ts'
import { type Model, PolicyFiles } from './policy-files.ts'
import type {
  Accumulated,
  Engine,
  EngineOptions,
  ExportOptions,
  Generation,
  Message,
  ModelInfo,
  PolicyReference,
  Prompt,
  SamplingOptions,
  Scored,
  ScoreItem,
  ScoreOptions,
  TrainItem,
  Updated,
  UpdateOptions,
} from './port.ts'
import { checkSamples, checkSampling } from './sampling/check-sampling.ts'
import { randomStream } from './sampling/random-stream.ts'
import { stopWatch } from './sampling/stop-strings.ts'
import { score } from './scoring/score.ts'
import { SerialQueue } from './serial-queue.ts'
import { ChatTokenizer } from './tokens/chat-tokenizer.ts'
import { loadModelDirectory } from './weights/model-directory.ts'

/** Opens what an engine works with. */
export type OpenBackend = (config: ModelConfig, options: BackendOptions) => Promise<Backend>

/** @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED when the directory cannot be used; as openDeviceBackend. */
export async function openLocalEngine(
  options: EngineOptions,
  open: OpenBackend = options.device === 'cpu' ? openCpuBackend : openDeviceBackend,
): Promise<Engine> {
  const { weights, ...model } = await loadModelDirectory(options.path)
  const tokenizer = ChatTokenizer.load(model, model.rawConfig, model.config.vocabularySize)
  const backend = await open(model.config, { ...options, stopTokens: tokenizer.stopTokens })
  try {
    return await engineOf(options, model, tokenizer, backend, await backend.hold(weights))
  } catch (error) {
    await backend.close()
    throw error
  }
}

async function engineOf(
  options: EngineOptions,
  model: Model,
  tokenizer: ChatTokenizer,
  backend: Backend,
  teacher: Held,
): Promise<Engine> {
  const policies = await Policies.create(backend, model.config, teacher, options.keepPolicies)
  const { headHash } = await policies.side('teacher')
  const info = {
    ...shapeOf(model.config),
    parameters: [...teacher.values()].reduce((sum, tensor) => sum + tensor.size, 0),
    stopTokens: tokenizer.stopTokens,
    weightsHash: await policies.hash('teacher'),
    tokenizerHash: tokenizer.tokenizerHash,
    templateHash: tokenizer.templateHash,
    teacherHead: headHash,
    device: options.device,
    threads: options.threads,
  }
  const files = new PolicyFiles(options, model, backend, policies)
  return new LocalEngine({ keepPolicies: options.keepPolicies, tokenizer, backend, policies, files, info })
}

function shapeOf({ architecture, layers, hiddenSize, vocabularySize, contextLength }: ModelConfig) {
  return { architecture, layers, hiddenSize, vocabularySize, contextLength }
}

interface Parts {
  /** Versions held beside the newest. */
  readonly keepPolicies: number
  readonly tokenizer: ChatTokenizer
  readonly backend: Backend
  readonly policies: Policies
  readonly files: PolicyFiles
  readonly info: ModelInfo
}

class LocalEngine implements Engine {
  readonly #keepPolicies: number
  readonly #tokenizer: ChatTokenizer
  readonly #backend: Backend
  readonly #policies: Policies
  readonly #files: PolicyFiles
  readonly #info: ModelInfo
  readonly #queue = new SerialQueue()
  /** Responses in the running sum of gradients. */
  #accumulated = 0
  #interrupted = false
  #closing: Promise<void> | undefined

  constructor({ keepPolicies, tokenizer, backend, policies, files, info }: Parts) {
    this.#keepPolicies = keepPolicies
    this.#tokenizer = tokenizer
    this.#backend = backend
    this.#policies = policies
    this.#files = files
    this.#info = info
  }

  async info(): Promise<ModelInfo> {
    if (this.#closing) throw closed()
    return this.#info
  }

  // Text needs no model: it does not wait behind the calls that do.
  async encodeChat(messages: readonly Message[]): Promise<Int32Array> {
    return this.#tokenizer.encodeChat(messages)
  }

  async decode(ids: Int32Array): Promise<string> {
    return this.#tokenizer.decode(ids)
  }

  generate(
    policy: PolicyReference,
    prompts: readonly Prompt[],
    options: SamplingOptions,
  ): Promise<Generation[]> {
    return this.#enqueue(async () => {
      this.#checkWanted()
      checkSampling(options)
      const weights = this.#policies.get(policy)
      for (const prompt of prompts) {
        checkSamples(prompt)
        this.#checkIds(`the prompt of ${prompt.key}`, prompt.ids)
      }
      const requests = prompts.flatMap(({ key, ids, samples = 1 }) =>
        Array.from({ length: samples }, (_, sample) => ({
          key,
          prompt: ids,
          random: randomStream({ seed: options.seed, key, policy, sample }),
          ...(options.stop.length > 0 && { ends: stopWatch(options.stop, of => this.#tokenizer.decode(of)) }),
        })),
      )
      return this.#backend.generate(weights, requests, options, () => this.#checkWanted())
    })
  }

  score(items: readonly ScoreItem[], options: ScoreOptions): Promise<Scored[]> {
    return this.#enqueue(async () => {
      items.forEach((item, index) => {
        this.#checkIds(`student prompt ${index}`, item.studentPrompt)
        this.#checkIds(`teacher prompt ${index}`, item.teacherPrompt)
        this.#checkIds(`response ${index}`, item.response)
      })
      const student = await this.#policies.side(options.policyVersion)
      const backend = this.#backend
      const scorer: Scorer = {
        hiddenStates: this.#whileWanted((...of) => backend.hiddenStates(...of)),
        numbers: this.#whileWanted((...of) => backend.numbers(...of)),
        logits: this.#whileWanted(of => backend.logits(of)),
      }
      return score(scorer, student, await this.#policies.side('teacher'), items, options)
    })
  }

  accumulate(items: readonly TrainItem[]): Promise<Accumulated> {
    return this.#enqueue(async () => {
      const { newest } = this.#policies
      const teacher = await this.#policies.side('teacher')
      for (const item of items) {
        if (item.loss !== 'forward-kl' || item.teacher.encoding !== 'factored') continue
        if (item.teacher.head === teacher.headHash) continue
        throw new GraspError(
          'SLICE_MISMATCH',
          `a slice was made with the output head ${item.teacher.head}; this engine's teacher has ${teacher.headHash}`,
        )
      }
      const weights = this.#policies.get(newest)
      const accumulated = await this.#backend.accumulate(weights, teacher.head, items)
      this.#accumulated += items.length
      return accumulated
    })
  }

  discard(): Promise<void> {
    return this.#enqueue(async () => this.#discard())
  }

  update(options: UpdateOptions): Promise<Updated> {
    return this.#enqueue(async () => {
      const weights = this.#policies.get(this.#policies.newest)
      if (options.responses === 0) {
        this.#discard()
        const version = this.#policies.add(weights)
        return { version, gradientNorm: 0, weightsHash: await this.#policies.hash(version) }
      }
      if (this.#accumulated === 0) {
        throw new GraspError('ENGINE_FAILED', 'there is nothing to update from: no response was accumulated')
      }
      const context = { teacher: this.#policies.teacher, keep: this.#keepPolicies > 0 }
      const updated = await this.#backend.update(weights, context, options)
      this.#accumulated = 0
      const version = this.#policies.add(updated.weights, updated.hash)
      return { version, gradientNorm: updated.gradientNorm, weightsHash: updated.hash }
    })
  }

  policyVersion(): Promise<number> {
    return this.#enqueue(async () => this.#policies.newest)
  }

  weightsHash(policy: PolicyReference): Promise<string> {
    return this.#enqueue(async () => this.#policies.hash(policy))
  }

  saveCheckpoint(path: string, state: unknown): Promise<void> {
    return this.#enqueue(() => this.#files.saveCheckpoint(path, state))
  }

  loadCheckpoint(path: string): Promise<unknown> {
    return this.#enqueue(async () => {
      const state = await this.#files.loadCheckpoint(path)
      this.#discard()
      return state
    })
  }

  loadPolicy(version: number, path: string, expected: string): Promise<void> {
    return this.#enqueue(() => this.#files.loadPolicy(version, path, expected))
  }

  exportPolicy(
    policy: PolicyReference,
    path: string,
    dtype: 'f32' | 'bf16',
    options?: ExportOptions,
  ): Promise<void> {
    return this.#enqueue(() => this.#files.export(policy, path, dtype, options))
  }

  /** Does not wait: it is said between two passes of the call that runs. */
  async interrupt(): Promise<void> {
    this.#interrupted = true
  }

  /** @throws GraspError ENGINE_FAILED when the teacher's weights are not what they were at the start. */
  close(): Promise<void> {
    this.#closing ??= this.#queue.run(() => this.#close())
    return this.#closing
  }

  async #close(): Promise<void> {
    try {
      await this.#policies.checkTeacher()
    } finally {
      this.#policies.free()
      await this.#backend.close()
    }
  }

  #discard(): void {
    this.#backend.discard()
    this.#accumulated = 0
  }

  /** The same function, as long as its results are wanted. */
  #whileWanted<A extends readonly unknown[], R>(work: (...of: A) => R): (...of: A) => R {
    return (...of) => {
      this.#checkWanted()
      return work(...of)
    }
  }

  #checkWanted(): void {
    if (this.#interrupted)
      throw new GraspError('INTERRUPTED', 'the engine was told to sample and score no more')
  }

  #checkIds(what: string, ids: Int32Array): void {
    checkIds(what, ids, this.#info.vocabularySize)
  }

  #enqueue<T>(task: () => Promise<T>): Promise<T> {
    if (this.#closing) return Promise.reject(closed())
    return this.#queue.run(task)
  }
}

function closed(): GraspError {
  return new GraspError('ENGINE_FAILED', 'the engine is closed')
}

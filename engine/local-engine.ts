/**
 * The engine in this process. Its calls run one after the other, but for those that touch no weights: they are
 * answered between two passes of the one that runs. While onnxruntime works, the JavaScript thread is blocked, so
 * a pipeline keeps its engine in another process (process/proxy.ts).
 */
import { createHash } from 'node:crypto'
import type { Tensor } from 'onnxruntime-node'
import { describeError, GraspError } from '../errors/grasp-error.ts'
import { checkIds } from './check-ids.ts'
import { type CheckpointModel, loadCheckpoint, saveCheckpoint } from './checkpoint/checkpoint.ts'
import { Decoder } from './decoding/decoder.ts'
import { Learner } from './learner/learner.ts'
import { initialAdapter } from './lora/initial-adapter.ts'
import { initialState, type OptimiserState } from './optimiser/adamw.ts'
import { Policies } from './policies.ts'
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
import { replaceFolder } from './weights/durable.ts'
import { HashThread } from './weights/hash-thread.ts'
import { loadModelDirectory, type ModelDirectory } from './weights/model-directory.ts'
import type { Weights } from './weights/weights.ts'
import { WeightsHasher, weightsHash } from './weights/weights-hash.ts'
import { writeModel } from './weights/write-model.ts'

/** Every model's directory has it. */
const MODEL_MARK = 'config.json'

/** @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED when the directory cannot be used. */
export async function openLocalEngine(options: EngineOptions): Promise<Engine> {
  const model = await loadModelDirectory(options.path)
  const { config, rawConfig } = model
  const tokenizer = ChatTokenizer.load(model, rawConfig, config.vocabularySize)
  const decoder = await Decoder.create(config, { ...options, stopTokens: tokenizer.stopTokens })
  const learner = await Learner.create(config, options)
  return new LocalEngine(options, model, tokenizer, decoder, learner)
}

class LocalEngine implements Engine {
  readonly #options: EngineOptions
  readonly #model: ModelDirectory
  readonly #tokenizer: ChatTokenizer
  readonly #decoder: Decoder
  readonly #learner: Learner
  readonly #policies: Policies
  readonly #queue = new SerialQueue()
  /** Made at the first step: an engine that only generates needs no moments. */
  #optimiser: OptimiserState | undefined
  /** The factors that are trained with `lora`, made at the first gradient. */
  #adapter: Weights | undefined
  /** From the first gradient on: new weights are hashed while the next are computed. */
  #hashThread: HashThread | undefined
  /** Responses in the running sum of gradients. */
  #accumulated = 0
  #closing: Promise<void> | undefined

  constructor(
    options: EngineOptions,
    model: ModelDirectory,
    tokenizer: ChatTokenizer,
    decoder: Decoder,
    learner: Learner,
  ) {
    this.#options = options
    this.#model = model
    this.#tokenizer = tokenizer
    this.#decoder = decoder
    this.#learner = learner
    this.#policies = new Policies(model.config, model.weights, options.keepPolicies)
  }

  info(): Promise<ModelInfo> {
    return this.#atOnce(() => {
      const { config, weights } = this.#model
      return {
        architecture: config.architecture,
        parameters: [...weights.values()].reduce((sum, tensor) => sum + tensor.size, 0),
        layers: config.layers,
        hiddenSize: config.hiddenSize,
        vocabularySize: config.vocabularySize,
        contextLength: config.contextLength,
        stopTokens: this.#tokenizer.stopTokens,
        weightsHash: this.#policies.hash('teacher'),
        tokenizerHash: this.#tokenizer.tokenizerHash,
        templateHash: this.#tokenizer.templateHash,
        teacherHead: this.#policies.side('teacher').headHash,
        device: this.#options.device,
        threads: this.#options.threads,
      }
    })
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
      return this.#decoder.generate(weights, requests, options)
    })
  }

  score(items: readonly ScoreItem[], options: ScoreOptions): Promise<Scored[]> {
    return this.#enqueue(async () => {
      items.forEach((item, index) => {
        this.#checkIds(`student prompt ${index}`, item.studentPrompt)
        this.#checkIds(`teacher prompt ${index}`, item.teacherPrompt)
        this.#checkIds(`response ${index}`, item.response)
      })
      const student = this.#policies.side(options.policyVersion)
      return score(this.#learner, student, this.#policies.side('teacher'), items, options)
    })
  }

  accumulate(items: readonly TrainItem[]): Promise<Accumulated> {
    return this.#enqueue(async () => {
      await this.#decoder.forget()
      const { newest } = this.#policies
      const teacher = this.#policies.side('teacher')
      for (const item of items) {
        if (item.loss !== 'forward-kl' || item.teacher.encoding !== 'factored') continue
        if (item.teacher.head === teacher.headHash) continue
        throw new GraspError(
          'SLICE_MISMATCH',
          `a slice was made with the output head ${item.teacher.head}; this engine's teacher has ${teacher.headHash}`,
        )
      }
      if (this.#options.threads > 1) this.#hashThread ??= new HashThread()
      const weights = this.#policies.get(newest)
      const { lora } = this.#options
      if (lora) this.#adapter ??= initialAdapter(this.#model.config, lora)
      const trained = this.#adapter ? new Map([...weights, ...this.#adapter]) : weights
      const accumulated = await this.#learner.accumulate(trained, teacher.head, items)
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
        return { version, gradientNorm: 0, weightsHash: this.#policies.hash(version) }
      }
      if (this.#accumulated === 0) {
        throw new GraspError('ENGINE_FAILED', 'there is nothing to update from: no response was accumulated')
      }
      this.#optimiser ??= initialState(this.#adapter ?? weights, this.#options.optimiserState)
      const hasher = new WeightsHasher(this.#hashThread?.hash() ?? createHash('sha256'))
      const updated = await this.#step(weights, this.#optimiser, options, (name, weight) =>
        hasher.add(name, weight),
      )
      this.#accumulated = 0
      const version = this.#policies.add(updated.weights, hasher.digest())
      return { version, gradientNorm: updated.gradientNorm, weightsHash: this.#policies.hash(version) }
    })
  }

  policyVersion(): Promise<number> {
    return this.#enqueue(async () => this.#policies.newest)
  }

  weightsHash(policy: PolicyReference): Promise<string> {
    return this.#enqueue(async () => this.#policies.hash(policy))
  }

  saveCheckpoint(path: string, state: unknown): Promise<void> {
    return this.#enqueue(() => {
      const { newest, versions } = this.#policies
      const [optimiser, adapter] = [this.#optimiser, this.#adapter]
      const checkpoint = { policyVersion: newest, policies: versions, optimiser, adapter, state }
      return saveCheckpoint(path, this.#checkpointModel(), checkpoint, this.#policies.hash(newest))
    })
  }

  loadCheckpoint(path: string): Promise<unknown> {
    return this.#enqueue(async () => {
      const checkpoint = await loadCheckpoint(path, this.#checkpointModel())
      this.#policies.restore(checkpoint.policies, checkpoint.policyVersion)
      this.#optimiser = checkpoint.optimiser
      this.#adapter = checkpoint.adapter
      this.#discard()
      return checkpoint.state
    })
  }

  loadPolicy(version: number, path: string, expected: string): Promise<void> {
    return this.#enqueue(async () => {
      const { weights } = await loadModelDirectory(path)
      const found = weightsHash(weights)
      if (found !== expected) {
        throw new GraspError(
          'CHECKPOINT_INVALID',
          `policy ${version} in ${path} has the weights hash ${found}, expected ${expected}; was the folder overwritten?`,
        )
      }
      this.#policies.put(version, weights)
    })
  }

  exportPolicy(
    policy: PolicyReference,
    path: string,
    dtype: 'f32' | 'bf16',
    { replace = false }: ExportOptions = {},
  ): Promise<void> {
    return this.#enqueue(async () => {
      const weights = this.#policies.get(policy)
      try {
        await replaceFolder(path, replace ? MODEL_MARK : undefined, async folder => {
          await writeModel(folder, this.#model, weights, dtype)
        })
      } catch (cause) {
        throw new GraspError(
          'ENGINE_FAILED',
          `${path} cannot be written: ${describeError(cause)}. Check the path, its permissions and the free space.`,
          { cause },
        )
      }
    })
  }

  /** @throws GraspError ENGINE_FAILED when the teacher's weights are not what they were at the start. */
  close(): Promise<void> {
    this.#closing ??= this.#queue.run(() => this.#close())
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#decoder.release()
    await this.#learner.close()
    await this.#hashThread?.close()
    this.#policies.checkTeacher()
  }

  async #step(
    weights: Weights,
    state: OptimiserState,
    options: UpdateOptions,
    made: (name: string, weight: Tensor) => void,
  ): Promise<{ weights: Weights; gradientNorm: number }> {
    const into = this.#replaced(weights)
    if (!this.#adapter) return this.#learner.update(weights, state, options, made, into)
    // Version 0, which the adapter was begun on, is the teacher.
    const { teacher } = this.#policies
    const updated = await this.#learner.updateAdapter(teacher, this.#adapter, state, options, made, into)
    this.#adapter = updated.adapter
    return updated
  }

  /**
   * Where no older version is kept, the next takes the arrays of the one that it replaces, but for those of the teacher.
   * Nobody reads them meanwhile: calls run one after the other, and the hash thread has copies.
   */
  #replaced(weights: Weights): (name: string) => Float32Array | undefined {
    const { teacher } = this.#policies
    return name => {
      const data = weights.get(name)!.data as Float32Array
      return this.#options.keepPolicies > 0 || data === teacher.get(name)!.data ? undefined : data
    }
  }

  #discard(): void {
    this.#learner.discard()
    this.#accumulated = 0
  }

  #checkpointModel(): CheckpointModel {
    const { rawConfig, companions } = this.#model
    const { lora, optimiserState } = this.#options
    return {
      rawConfig,
      companions,
      teacher: this.#policies.teacher,
      teacherHash: this.#policies.hash('teacher'),
      lora,
      optimiserState,
    }
  }

  #checkIds(what: string, ids: Int32Array): void {
    checkIds(what, ids, this.#model.config.vocabularySize)
  }

  async #atOnce<T>(task: () => T): Promise<T> {
    if (this.#closing) throw closed()
    return task()
  }

  #enqueue<T>(task: () => Promise<T>): Promise<T> {
    if (this.#closing) return Promise.reject(closed())
    return this.#queue.run(task)
  }
}

function closed(): GraspError {
  return new GraspError('ENGINE_FAILED', 'the engine is closed')
}

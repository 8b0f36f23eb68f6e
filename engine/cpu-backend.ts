/** The CPU: weights are arrays, gradients and moments are written in place. */
import { createHash } from 'node:crypto'
import type { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from './architectures/config.ts'
import type { Backend, BackendOptions, HeldUpdate, TrainingState, UpdateContext } from './backend.ts'
import { Decoder } from './decoding/decoder.ts'
import type { Request } from './decoding/row.ts'
import type { HeadInput, TokenNumbers } from './learner/head.ts'
import { Learner } from './learner/learner.ts'
import type { Sequence } from './learner/work.ts'
import { initialAdapter } from './lora/initial-adapter.ts'
import { initialState, type OptimiserState } from './optimiser/adamw.ts'
import type {
  Accumulated,
  EngineOptions,
  Generation,
  SamplingOptions,
  TrainItem,
  UpdateOptions,
} from './port.ts'
import { HashThread } from './weights/hash-thread.ts'
import type { Weights } from './weights/weights.ts'
import { WeightsHasher } from './weights/weights-hash.ts'

/** @throws GraspError CONFIG_INVALID when the model has not what an adapter is for. */
export async function openCpuBackend(config: ModelConfig, options: BackendOptions): Promise<Backend> {
  // It refuses what cannot be trained before either has made a session.
  const learner = await Learner.create(config, options)
  const decoder = await Decoder.create(config, options)
  return new CpuBackend(config, options, decoder, learner)
}

class CpuBackend implements Backend {
  readonly #config: ModelConfig
  readonly #options: EngineOptions
  readonly #decoder: Decoder
  readonly #learner: Learner
  /** Made at the first step: an engine that only generates needs no moments. */
  #optimiser: OptimiserState | undefined
  /** The factors that are trained with `lora`, made at the first gradient. */
  #adapter: Weights | undefined
  /** From the first gradient on: new weights are hashed while the next are computed. */
  #hashThread: HashThread | undefined

  constructor(config: ModelConfig, options: EngineOptions, decoder: Decoder, learner: Learner) {
    this.#config = config
    this.#options = options
    this.#decoder = decoder
    this.#learner = learner
  }

  async hold(weights: Weights): Promise<Weights> {
    return weights
  }

  async fetch(tensor: Tensor): Promise<Tensor> {
    return tensor
  }

  release(): void {
    // Arrays that nobody refers to are collected.
  }

  generate(
    weights: Weights,
    requests: readonly Request[],
    sampling: SamplingOptions,
    check: () => void,
  ): Promise<Generation[]> {
    return this.#decoder.generate(weights, requests, sampling, check)
  }

  hiddenStates(weights: Weights, sequences: readonly Sequence[]): Promise<Float32Array[]> {
    return this.#learner.hiddenStates(weights, sequences)
  }

  numbers(student: HeadInput, teacher: HeadInput, observed: Int32Array): Promise<TokenNumbers> {
    return this.#learner.numbers(student, teacher, observed)
  }

  logits(input: HeadInput): Promise<Float32Array> {
    return this.#learner.logits(input)
  }

  async accumulate(weights: Weights, teacherHead: Tensor, items: readonly TrainItem[]): Promise<Accumulated> {
    await this.#decoder.forget()
    if (this.#options.threads > 1) this.#hashThread ??= new HashThread()
    const { lora } = this.#options
    if (lora) this.#adapter ??= initialAdapter(this.#config, lora)
    const trained = this.#adapter ? new Map([...weights, ...this.#adapter]) : weights
    return this.#learner.accumulate(trained, teacherHead, items)
  }

  discard(): void {
    this.#learner.discard()
  }

  async update(
    weights: Weights,
    { teacher, keep }: UpdateContext<Weights>,
    options: UpdateOptions,
  ): Promise<HeldUpdate> {
    // Weights may be written over from here on.
    await this.#decoder.forget()
    this.#optimiser ??= initialState(this.#adapter ?? weights, this.#options.optimiserState)
    const hasher = new WeightsHasher(this.#hashThread?.hash() ?? createHash('sha256'))
    const made = (name: string, weight: Tensor) => hasher.add(name, weight)
    // Where no older version is kept, the next takes the arrays of the one that it replaces, but for those of the teacher.
    // Nobody reads them meanwhile: calls run one after the other, and the hash thread has copies.
    const into = (name: string) => {
      const data = weights.get(name)!.data as Float32Array
      return keep || data === teacher.get(name)!.data ? undefined : data
    }
    if (!this.#adapter) {
      const updated = this.#learner.update(weights, this.#optimiser, options, made, into)
      return { ...updated, hash: hasher.digest() }
    }
    const { adapter, ...updated } = await this.#learner.updateAdapter(
      teacher,
      this.#adapter,
      this.#optimiser,
      options,
      made,
      into,
    )
    this.#adapter = adapter
    return { ...updated, hash: hasher.digest() }
  }

  async training(): Promise<TrainingState> {
    return { optimiser: this.#optimiser, adapter: this.#adapter }
  }

  async restore({ optimiser, adapter }: TrainingState): Promise<void> {
    this.#optimiser = optimiser
    this.#adapter = adapter
  }

  async close(): Promise<void> {
    await this.#decoder.release()
    await this.#learner.close()
    await this.#hashThread?.close()
  }
}

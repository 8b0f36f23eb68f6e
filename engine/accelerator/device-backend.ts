/** A device with memory of its own: weights, gradients, moments and caches are resident there. */
import { createHash } from 'node:crypto'
import type { Tensor } from 'onnxruntime-node'
import { GraspError } from '../../errors/grasp-error.ts'
import type { ModelConfig } from '../architectures/config.ts'
import type { Backend, BackendOptions, HeldUpdate, TrainingState, UpdateContext } from '../backend.ts'
import type { Request } from '../decoding/row.ts'
import type { TokenNumbers } from '../learner/head.ts'
import type { Sequence } from '../learner/work.ts'
import { initialAdapter } from '../lora/initial-adapter.ts'
import type {
  Accumulated,
  EngineOptions,
  Generation,
  SamplingOptions,
  TrainItem,
  UpdateOptions,
} from '../port.ts'
import { HashThread } from '../weights/hash-thread.ts'
import type { Weights } from '../weights/weights.ts'
import { WeightsHasher } from '../weights/weights-hash.ts'
import type { Device } from './device.ts'
import { DeviceDecoder } from './device-decoder.ts'
import type { DeviceHeadInput } from './device-head.ts'
import { DeviceLearner } from './device-learner.ts'
import { openOnnxDevice } from './onnx-device.ts'
import {
  downloadParameter,
  downloadWeights,
  freeWeights,
  type Resident,
  type ResidentWeights,
  uploadWeights,
} from './resident.ts'

/**
 * @throws GraspError ENGINE_FAILED, saying what is missing, when there is no such device; CONFIG_INVALID for what
 * devices cannot do
 */
export async function openDeviceBackend(config: ModelConfig, options: BackendOptions): Promise<Backend> {
  const { device: kind, threads, bindingBytes, optimiserState } = options
  if (optimiserState === 'bf16') {
    throw new GraspError(
      'CONFIG_INVALID',
      `training.optimiserState bf16 is for model.device cpu; with ${kind} it must be f32`,
    )
  }
  const device = await openOnnxDevice({ kind, threads, bindingBytes })
  try {
    return deviceBackend(device, config, options)
  } catch (error) {
    await device.close()
    throw error
  }
}

/** On a device that is open; it is closed with the backend. */
export function deviceBackend(device: Device, config: ModelConfig, options: BackendOptions): Backend {
  return new DeviceBackend(device, config, options)
}

class DeviceBackend implements Backend {
  readonly #device: Device
  readonly #config: ModelConfig
  readonly #options: EngineOptions
  readonly #learner: DeviceLearner
  readonly #decoder: DeviceDecoder
  /** The factors that are trained with `lora`, made at the first gradient. */
  #adapter: ResidentWeights | undefined
  #hashThread: HashThread | undefined

  constructor(device: Device, config: ModelConfig, options: BackendOptions) {
    this.#device = device
    this.#config = config
    this.#options = options
    this.#learner = new DeviceLearner(device, config, options)
    this.#decoder = new DeviceDecoder(device, config, options)
  }

  hold(weights: Weights): Promise<ResidentWeights> {
    return uploadWeights(this.#device, this.#config, weights)
  }

  fetch(tensor: Resident): Promise<Tensor> {
    return downloadParameter(this.#device, tensor)
  }

  release(weights: ResidentWeights, others: readonly ResidentWeights[]): void {
    freeWeights(weights, others)
  }

  generate(
    weights: ResidentWeights,
    requests: readonly Request[],
    sampling: SamplingOptions,
    check: () => void,
  ): Promise<Generation[]> {
    return this.#decoder.generate(weights, requests, sampling, check)
  }

  hiddenStates(weights: ResidentWeights, sequences: readonly Sequence[]): Promise<Float32Array[]> {
    return this.#learner.hiddenStates(weights, sequences)
  }

  numbers(student: DeviceHeadInput, teacher: DeviceHeadInput, observed: Int32Array): Promise<TokenNumbers> {
    return this.#learner.numbers(student, teacher, observed)
  }

  logits(input: DeviceHeadInput): Promise<Float32Array> {
    return this.#learner.logits(input)
  }

  async accumulate(
    weights: ResidentWeights,
    teacherHead: Resident,
    items: readonly TrainItem[],
  ): Promise<Accumulated> {
    this.#hashThread ??= new HashThread()
    const { lora } = this.#options
    if (lora) this.#adapter ??= await this.hold(initialAdapter(this.#config, lora))
    const all = this.#adapter ? new Map([...weights, ...this.#adapter]) : weights
    return this.#learner.accumulate(all, this.#adapter ?? weights, teacherHead, items)
  }

  discard(): void {
    this.#learner.discard()
  }

  async update(
    weights: ResidentWeights,
    { teacher, keep }: UpdateContext<ResidentWeights>,
    options: UpdateOptions,
  ): Promise<HeldUpdate> {
    const hasher = new WeightsHasher(this.#hashThread?.hash() ?? createHash('sha256'))
    const made = async (name: string, weight: Resident) => hasher.add(name, await this.fetch(weight))
    if (!this.#adapter) {
      const frees = (name: string) => !keep && weights.get(name) !== teacher.get(name)
      const updated = await this.#learner.update(weights, options, { made, frees })
      return { ...updated, hash: hasher.digest() }
    }
    const { adapter, ...updated } = await this.#learner.updateAdapter(teacher, this.#adapter, options, made)
    this.#adapter = adapter
    return { ...updated, hash: hasher.digest() }
  }

  async training(): Promise<TrainingState> {
    return {
      optimiser: await this.#learner.optimiser.save(),
      adapter: this.#adapter && (await downloadWeights(this.#device, this.#adapter)),
    }
  }

  async restore({ optimiser, adapter }: TrainingState): Promise<void> {
    await this.#learner.optimiser.restore(optimiser, moments => this.hold(moments))
    this.#freeAdapter()
    this.#adapter = adapter && (await this.hold(adapter))
  }

  async close(): Promise<void> {
    this.#learner.free()
    this.#decoder.free()
    this.#freeAdapter()
    await this.#hashThread?.close()
    await this.#device.close()
  }

  #freeAdapter(): void {
    if (this.#adapter) freeWeights(this.#adapter)
    this.#adapter = undefined
  }
}

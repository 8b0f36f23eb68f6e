/**
 * Hidden states, losses, gradients and updates on a device: what learner/learner.ts does on the CPU. Weights,
 * activations, gradients and moments are resident; token ids and targets go there, losses and hidden states of
 * responses come back.
 */
import type { ModelConfig } from '../architectures/config.ts'
import { type Batch, batchesOf } from '../learner/batches.ts'
import type { TokenNumbers } from '../learner/head.ts'
import { ACTIVATION_BYTES, type LearnerLimits } from '../learner/limits.ts'
import { concatTargets } from '../learner/target.ts'
import {
  groupBy,
  lengthsOf,
  putMeans,
  putRows,
  ratesOf,
  type Sequence,
  type Work,
  workOf,
} from '../learner/work.ts'
import { clippedMean, summed } from '../optimiser/mean-gradient.ts'
import type { Accumulated, TrainItem, UpdateOptions } from '../port.ts'
import { EMBEDDING } from '../weights/parameter-shapes.ts'
import type { Device } from './device.ts'
import { DeviceEmbedding } from './device-embedding.ts'
import { DeviceHead, type DeviceHeadInput } from './device-head.ts'
import { DeviceLayers } from './device-layers.ts'
import { DeviceMerger } from './device-merger.ts'
import { DeviceOptimiser, type StepOptions } from './device-optimiser.ts'
import { DeviceSessions } from './device-sessions.ts'
import { GradientSums } from './gradient-sums.ts'
import { downloadParameter, freeWeights, type Resident, type ResidentWeights } from './resident.ts'
import { scoped } from './scope.ts'

/** Sizes of a pass do not decide over the order of sums on a device. */
const NO_LIMITS = { rows: 1, tokens: 1 }

/** One call at a time: calls share the running gradient. */
export class DeviceLearner {
  readonly optimiser: DeviceOptimiser
  readonly #device: Device
  readonly #config: ModelConfig
  readonly #options: LearnerLimits
  readonly #layers: DeviceLayers
  readonly #head: DeviceHead
  readonly #embedding: DeviceEmbedding
  readonly #merger: DeviceMerger | undefined
  readonly #sessions: DeviceSessions
  #sums: GradientSums | undefined

  /** @throws GraspError CONFIG_INVALID when the model has not what the adapter is for. */
  constructor(device: Device, config: ModelConfig, options: LearnerLimits) {
    const { lora, activationBytes = ACTIVATION_BYTES, chunkTokens } = options
    this.#device = device
    this.#config = config
    this.#options = options
    this.#layers = new DeviceLayers(device, config, activationBytes, lora)
    this.#head = new DeviceHead(device, config, chunkTokens)
    this.#embedding = new DeviceEmbedding(device, config)
    this.#merger = lora && new DeviceMerger(device, config, lora)
    this.#sessions = new DeviceSessions(device)
    this.optimiser = new DeviceOptimiser(device)
  }

  /** As Learner.hiddenStates. */
  async hiddenStates(weights: ResidentWeights, sequences: readonly Sequence[]): Promise<Float32Array[]> {
    const results = sequences.map(() => new Float32Array(0))
    const lengths = lengthsOf(this.#config, sequences)
    const { hiddenSize: D } = this.#config
    for (const batch of this.#batches(lengths)) {
      const { members } = batch
      const rows = members.map(index => sequences[index]!.ids.subarray(0, lengths[index]))
      const ranges = members.map(index => sequences[index]!)
      const hidden = await scoped(this.#device, async scope => {
        const x = await this.#embedding.embed(weights, rows, batch, scope)
        const y = await this.#layers.forward(weights, x, scope)
        return this.#head.norm(weights, y, numbersOf(ranges, batch.length))
      })
      putRows(hidden, members, sequences, D, results)
    }
    return results
  }

  /** As Learner.numbers. */
  numbers(student: DeviceHeadInput, teacher: DeviceHeadInput, observed: Int32Array): Promise<TokenNumbers> {
    return this.#head.numbers(student, teacher, observed)
  }

  /** Logits [N, V] of hidden states. */
  logits(input: DeviceHeadInput): Promise<Float32Array> {
    return this.#head.logits(input)
  }

  /**
   * As Learner.accumulate.
   * @param trained what gradients are summed for: the weights, or an adapter's factors
   */
  async accumulate(
    weights: ResidentWeights,
    trained: ResidentWeights,
    teacherHead: Resident,
    items: readonly TrainItem[],
  ): Promise<Accumulated> {
    const losses = new Float64Array(items.length)
    const works = items.map((item, index) => workOf(this.#config, index, item))
    this.#sums ??= await GradientSums.zeros(this.#device, this.#sessions, trained)
    for (const group of groupBy(works, ({ kind, widths }) => `${kind} ${widths}`)) {
      const lengths = group.map(({ ids, count }) => (count === 0 ? 0 : ids.length))
      for (const batch of this.#batches(lengths)) {
        const members = batch.members.map(index => group[index]!)
        await this.#pass(members, batch, weights, teacherHead, this.#sums, losses)
      }
    }
    return { losses, tokens: works.reduce((sum, { count }) => sum + count, 0) }
  }

  /** A copy of a parameter's accumulated gradient; null before anything was accumulated, and for what is frozen. */
  async gradient(parameter: string): Promise<Float32Array | null> {
    if (!this.#sums?.has(parameter)) return null
    const tensor = await downloadParameter(this.#device, this.#sums.resident(parameter))
    return tensor.data as Float32Array
  }

  /** Drops what was accumulated. */
  discard(): void {
    this.#sums?.free()
    this.#sums = undefined
  }

  /** As Learner.update. */
  async update(
    weights: ResidentWeights,
    options: UpdateOptions,
    { made, frees }: Pick<StepOptions, 'made' | 'frees'>,
  ): Promise<{ weights: ResidentWeights; gradientNorm: number }> {
    const { sums, scale, gradientNorm } = await this.#meanGradient(options)
    const updated = await this.optimiser.step(weights, sums, { scale, options, made, frees })
    this.#sums = undefined
    return { weights: updated, gradientNorm }
  }

  /** As Learner.updateAdapter; the factors that are replaced are freed. */
  async updateAdapter(
    base: ResidentWeights,
    adapter: ResidentWeights,
    options: UpdateOptions,
    made: StepOptions['made'],
  ): Promise<{ weights: ResidentWeights; adapter: ResidentWeights; gradientNorm: number }> {
    const { sums, scale, gradientNorm } = await this.#meanGradient(options)
    const step: StepOptions = { scale, options, made: async () => {}, frees: () => true }
    const updated = await this.optimiser.step(adapter, sums, step)
    this.#sums = undefined
    try {
      return { weights: await this.#merger!.merge(base, updated, made), adapter: updated, gradientNorm }
    } catch (error) {
      freeWeights(updated)
      throw error
    }
  }

  /** Frees what it holds on the device. */
  free(): void {
    this.discard()
    this.#layers.free()
    this.optimiser.free()
  }

  async #meanGradient(options: UpdateOptions) {
    const sums = summed(this.#sums, options)
    return { sums, ...clippedMean(await this.optimiser.norm(sums), options) }
  }

  async #pass(
    works: readonly Work[],
    batch: Batch,
    weights: ResidentWeights,
    teacherHead: Resident,
    sums: GradientSums,
    losses: Float64Array,
  ): Promise<void> {
    const rows = works.map(({ ids }) => ids)
    await scoped(this.#device, async scope => {
      const x = await this.#embedding.embed(weights, rows, batch, scope)
      const { y, traces } = await this.#layers.trace(weights, x, scope)
      const loss = await this.#head.loss(
        works[0]!.kind,
        weights,
        teacherHead,
        y,
        numbersOf(works, batch.length),
        ratesOf(works),
        concatTargets(works.map(({ target }) => target)),
        sums,
        scope,
      )
      scope.free(y)
      putMeans(loss.losses, works, losses)
      const dx = await this.#layers.backward(weights, traces, loss.dy, sums, scope)
      if (sums.has(EMBEDDING)) await this.#embedding.addGradient(sums, rows, batch, dx)
    })
  }

  #batches(lengths: readonly number[]): Batch[] {
    return batchesOf(lengths, this.#options.tokensPerPass, NO_LIMITS)
  }
}

/** Rows `from` to `from + count − 1` of each row of a batch, numbered among its B · T. */
function numbersOf(
  ranges: readonly { readonly from: number; readonly count: number }[],
  length: number,
): Int32Array {
  return Int32Array.from(
    ranges.flatMap(({ from, count }, row) =>
      Array.from({ length: count }, (_, token): number => row * length + from + token),
    ),
  )
}

/**
 * Hidden states, losses, gradients and updates of a model whose weights are given with each call. Shape
 * suffixes: B rows, T padded tokens, N tokens of responses, D hidden size, V vocabulary.
 */
import type { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import { factorShapes } from '../lora/adapter.ts'
import { Merger } from '../lora/merger.ts'
import { adamw, type OptimiserState } from '../optimiser/adamw.ts'
import { globalNorm } from '../optimiser/global-norm.ts'
import { clippedMean, summed } from '../optimiser/mean-gradient.ts'
import type { Accumulated, TrainItem, UpdateOptions } from '../port.ts'
import type { SessionOptions } from '../runtime/session.ts'
import { EMBEDDING, parameterShapes } from '../weights/parameter-shapes.ts'
import type { Weights } from '../weights/weights.ts'
import { type Batch, batchesOf, type PassLimits, passLimits, tailStart } from './batches.ts'
import { addEmbeddingGradient, embed } from './embedding.ts'
import { GradientSums } from './gradient-sums.ts'
import { Head, type HeadInput, type TokenNumbers } from './head.ts'
import { Layers } from './layers.ts'
import { ACTIVATION_BYTES, type LearnerLimits } from './limits.ts'
import { gatherRows, scatterRows } from './rows.ts'
import { concatTargets } from './target.ts'
import { groupBy, lengthsOf, putMeans, putRows, ratesOf, type Sequence, type Work, workOf } from './work.ts'

/** A layer is some 60 operations, of which half take less than a millisecond: see docs/decisions.md. */
const SPIN_MICROSECONDS = 100

export interface LearnerOptions extends SessionOptions, LearnerLimits {}

/** One call at a time: calls share their memory and the running gradient. */
export class Learner {
  readonly #config: ModelConfig
  readonly #options: LearnerOptions
  readonly #layers: Layers
  readonly #head: Head
  readonly #merger: Merger | undefined
  readonly #least: PassLimits
  #sums: GradientSums | undefined

  private constructor(config: ModelConfig, options: LearnerOptions, layers: Layers, merger?: Merger) {
    this.#config = config
    this.#options = options
    this.#layers = layers
    this.#merger = merger
    this.#least = passLimits(config, options.lora?.rank)
    this.#head = new Head(config, options, options.chunkTokens)
  }

  /** @throws GraspError CONFIG_INVALID when the model has not what the adapter is for. */
  static async create(config: ModelConfig, given: LearnerOptions): Promise<Learner> {
    const options = { spinMicroseconds: SPIN_MICROSECONDS, ...given }
    const { lora, activationBytes = ACTIVATION_BYTES } = options
    const layers = await Layers.create(config, activationBytes, options, lora)
    return new Learner(config, options, layers, lora && (await Merger.create(config, lora, options)))
  }

  /**
   * Hidden states after the final norm: [count, D] of each sequence, in order. Row t, through the head, is
   * the distribution of the token at t + 1.
   * @throws GraspError PROMPT_TOO_LONG, RECORD_INVALID
   */
  async hiddenStates(weights: Weights, sequences: readonly Sequence[]): Promise<Float32Array[]> {
    const results = sequences.map(() => new Float32Array(0))
    const lengths = lengthsOf(this.#config, sequences)
    const { hiddenSize: D } = this.#config
    for (const batch of this.#batches(lengths)) {
      const { members } = batch
      const rows = members.map(index => sequences[index]!.ids.subarray(0, lengths[index]))
      const x = this.#embed(weights, rows, batch)
      const ranges = members.map(index => sequences[index]!)
      const start = tailStart(ranges, batch, this.#least)
      const y = await this.#layers.forward(weights, x, start)
      const hidden = await this.#head.norm(weights, gatherRows(y, ranges, start))
      putRows(hidden, members, sequences, D, results)
    }
    return results
  }

  /** Log-sum-exps, log-probabilities and KL of N tokens. */
  numbers(student: HeadInput, teacher: HeadInput, observed: Int32Array): Promise<TokenNumbers> {
    return this.#head.numbers(student, teacher, observed)
  }

  /** Logits [N, V] of hidden states. */
  logits(input: HeadInput): Promise<Float32Array> {
    return this.#head.logits(input)
  }

  /**
   * Adds the gradient of Σ over items of the mean loss over the item's tokens to the running sum. An item
   * without response tokens has loss 0 and no gradient.
   * @param teacherHead [V, D], which turns `factored` teachers into logits
   * @throws GraspError SLICE_MISMATCH, RECORD_INVALID, PROMPT_TOO_LONG: nothing is added then; ENGINE_FAILED:
   * the running gradient is to be discarded
   */
  async accumulate(weights: Weights, teacherHead: Tensor, items: readonly TrainItem[]): Promise<Accumulated> {
    const losses = new Float64Array(items.length)
    const works = items.map((item, index) => workOf(this.#config, index, item))
    this.#sums ??= new GradientSums(this.#trainedShapes())
    for (const group of groupBy(works, ({ kind, widths }) => `${kind} ${widths}`)) {
      const lengths = group.map(({ ids, count }) => (count === 0 ? 0 : ids.length))
      for (const batch of this.#batches(lengths)) {
        const members = batch.members.map(index => group[index]!)
        await this.#pass(members, batch, weights, teacherHead, this.#sums, losses)
      }
    }
    return { losses, tokens: works.reduce((sum, { count }) => sum + count, 0) }
  }

  /** The accumulated gradient of a parameter, as it stands; null before anything was accumulated, and for what is frozen. */
  gradient(parameter: string): Float32Array | null {
    return this.#sums?.has(parameter) ? this.#sums.data(parameter) : null
  }

  /** Drops what was accumulated. */
  discard(): void {
    this.#sums?.clear()
  }

  /**
   * Clips, steps AdamW and drops what was accumulated.
   * @param made told each new weight, in the order of their names, before the next is computed
   * @param into where a new weight goes, which may be the array of the old one; a fresh array where undefined
   * @returns new weights, and the norm of the mean gradient before clipping; `state` is advanced in place
   */
  update(
    weights: Weights,
    state: OptimiserState,
    options: UpdateOptions,
    made?: (name: string, weight: Tensor) => void,
    into?: (name: string) => Float32Array | undefined,
  ): { weights: Weights; gradientNorm: number } {
    const { sums, scale, gradientNorm } = this.#meanGradient(options)
    const updated = adamw(weights, name => sums.data(name), scale, state, options, made, into)
    sums.clear()
    return { weights: updated, gradientNorm }
  }

  /**
   * The same of an adapter.
   * @param base the frozen weights
   * @returns the new factors, and the weights that they stand for
   */
  async updateAdapter(
    base: Weights,
    adapter: Weights,
    state: OptimiserState,
    options: UpdateOptions,
    made?: (name: string, weight: Tensor) => void,
    into?: (name: string) => Float32Array | undefined,
  ): Promise<{ weights: Weights; adapter: Weights; gradientNorm: number }> {
    const { sums, scale, gradientNorm } = this.#meanGradient(options)
    const updated = adamw(adapter, name => sums.data(name), scale, state, options)
    sums.clear()
    return { weights: await this.#merger!.merge(base, updated, made, into), adapter: updated, gradientNorm }
  }

  async close(): Promise<void> {
    await this.#layers.release()
    await this.#head.release()
    await this.#merger?.release()
  }

  #trainedShapes(): ReadonlyMap<string, readonly number[]> {
    const { lora } = this.#options
    return lora ? factorShapes(this.#config, lora) : parameterShapes(this.#config)
  }

  /** The norm of the mean over responses, before clipping, and the factor of the sums for mean and clipping. */
  #meanGradient(options: UpdateOptions): { sums: GradientSums; scale: number; gradientNorm: number } {
    const sums = summed(this.#sums, options)
    const norm = globalNorm([...sums.names()].map(name => sums.data(name)))
    return { sums, ...clippedMean(norm, options) }
  }

  async #pass(
    works: readonly Work[],
    batch: Batch,
    weights: Weights,
    teacherHead: Tensor,
    sums: GradientSums,
    losses: Float64Array,
  ): Promise<void> {
    const rows = works.map(({ ids }) => ids)
    const start = tailStart(works, batch, this.#least)
    const { y, traces } = await this.#layers.trace(weights, this.#embed(weights, rows, batch), start)
    const loss = await this.#head.loss(
      works[0]!.kind,
      weights,
      teacherHead,
      gatherRows(y, works, start),
      ratesOf(works),
      concatTargets(works.map(({ target }) => target)),
      sums,
    )
    putMeans(loss.losses, works, losses)
    const dx = await this.#layers.backward(weights, traces, scatterRows(loss.gradient, works, y, start), sums)
    if (sums.has(EMBEDDING)) addEmbeddingGradient(sums.data(EMBEDDING), rows, dx, this.#config.embeddingScale)
  }

  #embed(weights: Weights, rows: readonly Int32Array[], batch: Batch): Tensor {
    return embed(weights.get(EMBEDDING)!, rows, batch, this.#config.embeddingScale)
  }

  #batches(lengths: readonly number[]): Batch[] {
    return batchesOf(lengths, this.#options.tokensPerPass, this.#least)
  }
}

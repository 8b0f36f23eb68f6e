import { concatMap, type OperatorFunction, pipe } from 'rxjs'
import { deadLetter } from '../bus/dead-letter.ts'
import { type Delivery, type Output, output, type Place, type Position } from '../bus/port.ts'
import type { Engine, UpdateOptions } from '../engine/port.ts'
import { GraspError, isPerRecord } from '../errors/grasp-error.ts'
import type { Slice, Span, Update } from '../schemas/types.ts'
import { type KeyedBatch, keyedBatch } from './batch-key.ts'
import { learningRate, type ScheduleOptions } from './learning-rate.ts'
import { naming } from './naming.ts'
import { OpenBatch } from './open-batch.ts'
import { SlicePositions } from './slice-positions.ts'
import { checkSlice, type SliceReader } from './slicing.ts'

export interface TrainOptions {
  readonly engine: Engine
  readonly reader: SliceReader
  readonly schedule: ScheduleOptions
  readonly optimiser: Omit<UpdateOptions, 'responses' | 'learningRate'>
  /** Rollouts whose gradients are accumulated in one call, in the order of their indices. */
  readonly microbatch: number
  /** The policy version to go on from: batches before it are already in the weights. */
  readonly version: number
  /**
   * By batch, for those before `version`: where the slices lay that it was made of. Slices that are delivered from there
   * again are passed over; any others of such a batch come too late.
   */
  readonly trained: ReadonlyMap<number, readonly Span[]>
  /** Updates that rollouts may be ahead: slices of so many batches more may arrive before they can be used. */
  readonly lag: number
  /**
   * Gives back credits. Slices of the batches that the rollout rule lets be in flight need none, since the rule
   * bounds them and the trainer could otherwise wait for a slice that its own credits keep out. Later slices
   * (a replay reads far ahead) hold theirs until their turn.
   */
  readonly release: (places: readonly Place[]) => void
  /** Commits, validates, saves: no further update is begun before it resolves. */
  readonly settle: (step: Step) => Promise<void>
}

/** One optimiser step, with what is to be committed with it. The engine already holds the new weights. */
export interface Step {
  readonly update: Update
  /** The next offset of `slices` to read, in each partition where it has moved (slice-positions.ts). */
  readonly positions: readonly Position[]
  readonly deadLetters: readonly Output[]
}

/**
 * slices → updates: batch b is accumulated in the order of its rollouts and makes policy version b + 1. Which
 * slices arrive together, and in which order, changes neither the sums nor their rounding. Emits each update
 * once `settle` is through with it.
 */
export function train(options: TrainOptions): OperatorFunction<Delivery<'slices'>, Update> {
  const trainer = new BatchTrainer(options)
  return pipe(
    concatMap(delivery => trainer.take(delivery)),
    concatMap(updates => updates),
  )
}

class BatchTrainer {
  readonly #options: TrainOptions
  readonly #open = new Map<number, OpenBatch>()
  readonly #positions = new SlicePositions()
  #version: number
  /** Rollouts of the current batch that are already accumulated. */
  #taken = 0
  #lossSum = 0
  #responses = 0
  #tokens = 0
  #ahead: { place: Place; batch: number }[] = []
  #dead: Output[] = []
  #began = performance.now()

  constructor(options: TrainOptions) {
    this.#options = options
    this.#version = options.version
  }

  async take(delivery: Delivery<'slices'>): Promise<Update[]> {
    this.#admit(delivery)
    const updates: Update[] = []
    for (;;) {
      const batch = this.#open.get(this.#version)
      if (batch === undefined) return updates
      await this.#accumulate(batch)
      if (this.#taken < batch.size) return updates
      const step = await this.#step(batch)
      await this.#options.settle(step)
      updates.push(step.update)
    }
  }

  #admit(delivery: Delivery<'slices'>): void {
    const place = { topic: delivery.topic, partition: delivery.partition, offset: delivery.offset }
    const batch = delivery.value?.batch ?? keyedBatch(delivery.key)
    this.#positions.deliver(place)
    this.#ahead.push({ place, batch: batch?.number ?? this.#version })
    this.#release()
    if (batch !== undefined && this.#wasTrained(batch.number, place)) {
      this.#positions.done({ ...place, to: place.offset + 1 })
      return
    }
    try {
      if (delivery.error !== undefined) throw delivery.error
      if (delivery.value.batch.number < this.#version) throw late(delivery.value)
      if (delivery.value.failed === null) checkSlice(delivery.value, this.#options.reader)
      this.#batchOf(delivery.value.batch, delivery.value.policyVersion).add(delivery)
    } catch (error) {
      if (!isPerRecord(error)) throw error
      this.#dead.push(deadLetter(delivery, { stage: 'training', error }))
      if (batch === undefined || batch.number < this.#version) {
        this.#positions.done({ ...place, to: place.offset + 1 })
      } else if (delivery.error === undefined) this.#batchOf(batch).refuse(delivery)
      else this.#batchOf(batch).lose(place)
    }
  }

  #wasTrained(batch: number, { partition, offset }: Place): boolean {
    const spans = this.#options.trained.get(batch) ?? []
    return spans.some(span => span.partition === partition && span.from <= offset && offset < span.to)
  }

  /** Where no slice of the batch can be decoded, the rule says which policy its rollouts were sampled with. */
  #batchOf(batch: KeyedBatch, rolloutVersion = Math.max(0, batch.number - this.#options.lag)): OpenBatch {
    const open = this.#open.get(batch.number) ?? new OpenBatch(batch, rolloutVersion)
    this.#open.set(batch.number, open)
    return open
  }

  /** Gives back the credits of what is within the lag. */
  #release(): void {
    const { lag, release } = this.#options
    const within = ({ batch }: { batch: number }) => batch <= this.#version + lag
    const places = this.#ahead.filter(within).map(({ place }) => place)
    if (places.length === 0) return
    this.#ahead = this.#ahead.filter(entry => !within(entry))
    release(places)
  }

  async #accumulate(batch: OpenBatch): Promise<void> {
    const { engine, microbatch } = this.#options
    while (this.#taken < batch.size && batch.has(this.#taken, this.#taken + microbatch)) {
      const items = batch.take(this.#taken, this.#taken + microbatch)
      this.#taken = Math.min(batch.size, this.#taken + microbatch)
      if (items.length > 0) {
        const { losses, tokens } = await naming(`batch ${batch.number}`, engine.accumulate(items))
        for (const loss of losses) this.#lossSum += loss
        this.#responses += items.length
        this.#tokens += tokens
      }
    }
  }

  async #step(batch: OpenBatch): Promise<Step> {
    const { engine, schedule, optimiser } = this.#options
    const rate = learningRate(this.#version, schedule)
    const responses = this.#responses
    const { version, gradientNorm, weightsHash } = await engine.update({
      ...optimiser,
      responses,
      learningRate: rate,
    })
    const mean = (sum: number) => (responses === 0 ? 0 : sum / responses)
    const update: Update = {
      version,
      batch: batch.number,
      rolloutVersion: batch.rolloutVersion,
      instances: batch.instances,
      consumed: batch.spans,
      responses,
      tokens: this.#tokens,
      loss: mean(this.#lossSum),
      kl: mean(batch.klSum),
      gradientNorm,
      learningRate: rate,
      weightsHash,
      milliseconds: performance.now() - this.#began,
    }
    this.#open.delete(batch.number)
    for (const span of batch.spans) this.#positions.done(span)
    const positions = this.#positions.moved([...this.#open.values()].flatMap(({ spans }) => spans))
    const step = { update, positions, deadLetters: this.#dead }
    this.#version = version
    this.#release()
    this.#taken = 0
    this.#lossSum = 0
    this.#responses = 0
    this.#tokens = 0
    this.#dead = []
    this.#began = performance.now()
    return step
  }
}

function late({ instance, batch }: Slice): GraspError {
  const message = `slice of ${instance} arrived after batch ${batch.number} had been trained on`
  return new GraspError('RECORD_INVALID', message)
}

/** The record of a step. */
export function updateOutput(update: Update): Output {
  return output('updates', String(update.version), update)
}

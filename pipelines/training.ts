/**
 * The trainer sink. Its positions live inside its checkpoint: on start it loads the newest one, reads the slices
 * from there, and so makes the same updates again that a crash took away.
 */
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { concat, defer, EMPTY, ignoreElements, type Observable, takeUntil } from 'rxjs'
import { type Log, output } from '../bus/port.ts'
import { GraspError } from '../errors/grasp-error.ts'
import { type Step, train, updateOutput } from '../operators/train.ts'
import type { Span, Update } from '../schemas/types.ts'
import type { Checkpoints, TrainerState } from './checkpoints.ts'
import type { JudgedContext, ModelContext, StageContext } from './context.ts'
import { evaluateSplit } from './evaluation.ts'
import { nextBatch } from './next-batch.ts'
import { whyNothingTrained } from './nothing-trained.ts'
import { untrained } from './policies.ts'
import type { FinalPolicy } from './result.ts'
import { openStage } from './stage.ts'

export interface Training {
  /** Emits each update; completes with the stream of slices, or after the step at hand when the run is to stop. */
  readonly updates$: Observable<Update>
  /** The trainer's state as of the last update. */
  state(): TrainerState
  /** Saves the newest policy unless it is saved already. */
  save(): Promise<void>
  /**
   * After the last update: validates it, and makes the best policy the engine's.
   * Errors: STAGE_FAILED where the slices ended before every batch was trained on; what was made is saved.
   */
  finish(): Promise<FinalPolicy>
}

/** Restores the newest checkpoint, if any, and returns the state to go on from. */
export async function restoreTrainer(context: ModelContext, checkpoints: Checkpoints): Promise<TrainerState> {
  const { config, configHash, engine, log, logger } = context
  const newest = (await checkpoints.versions()).at(-1)
  if (newest === undefined) {
    const partitions = (await log.topics()).find(({ topic }) => topic === 'slices')?.partitions ?? 1
    const positions = Array.from({ length: partitions }, () => 0)
    return { run: config.run, configHash, version: 0, positions, best: null }
  }
  const state = checkpoints.parse(
    newest,
    await engine.loadCheckpoint(checkpoints.path(newest)),
    config.run,
    configHash,
  )
  const ends = (await log.topics()).find(({ topic }) => topic === 'slices')?.ends ?? []
  if (state.positions.some((position, partition) => position > (ends[partition] ?? 0))) {
    throw new GraspError(
      'CHECKPOINT_INVALID',
      `${checkpoints.path(newest)} was made of slices up to ${state.positions.join(', ')}, but those in the log end ` +
        `at ${ends.join(', ') || 0}: the log was removed or is another one. Bring it back, or remove ` +
        `${config.output.path} to start from the beginning`,
    )
  }
  logger.info({ version: newest }, 'resumed from a checkpoint')
  return state
}

export interface TrainingOptions {
  readonly checkpoints: Checkpoints
  readonly restored: TrainerState
  /** Lets the stages that sample and score use a new version; the next update waits for it. */
  readonly announce: (version: number) => void | Promise<void>
}

export async function training(context: JudgedContext, options: TrainingOptions): Promise<Training> {
  const { config, log, engine, info, progress, logger, stop$ } = context
  const { checkpoints, restored, announce } = options
  const { every } = config.evaluation
  const { checkpointEvery } = config.training
  const { logged, trained } = await updatesOf(log, restored)
  const expected = expectation(context)
  // A crash may have come between the checkpoint and its record.
  if (restored.version > 0 && !(await isRecorded(log, checkpoints, restored))) {
    await recordPolicy(context, checkpoints, restored)
  }
  let state = restored
  let saved = restored
  let last = performance.now()

  const save = async () => {
    if (saved === state) return
    await saveCheckpoint(context, checkpoints, state)
    saved = state
  }

  const settle = async ({ update, positions, deadLetters }: Step) => {
    const { version } = update
    const before = logged.get(version)
    if (before === undefined) {
      await log.commit({ group: 'training', outputs: [updateOutput(update), ...deadLetters], positions })
      await appendMetrics(context, update)
    } else if (before.weightsHash !== update.weightsHash) {
      logger.warn(
        { version, recorded: before.weightsHash, now: update.weightsHash },
        'this update gave other weights than the log recorded: another device, engine or number of threads?',
      )
    }
    logger.info({ version, loss: update.loss, gradientNorm: update.gradientNorm }, 'update')
    const next = [...state.positions]
    for (const { partition, offset } of positions) next[partition] = offset
    state = { ...state, version, positions: next }
    progress({
      kind: 'update',
      ...pick(update),
      seconds: (performance.now() - last) / 1000,
      ...(await expected()),
    })
    last = performance.now()
    if (isMilestone()) await validate()
    if (version % checkpointEvery === 0) await save()
    await announce(version)
  }

  /** Whether the policy at hand is one of those that are validated on the way. */
  const isMilestone = () => every > 0 && state.version > 0 && state.version % every === 0

  /** Measures the policy at hand, and saves it where it is the best so far, or where this is all there is time for. */
  const validate = async () => {
    const { version, best } = state
    const request = { role: 'grasp', policy: version, policyVersion: version, split: 'validation' } as const
    const { macro } = await evaluateSplit(context, request).catch(async error => {
      if (error instanceof GraspError && error.code === 'INTERRUPTED') await save()
      throw error
    })
    if (macro === null || (best !== null && macro <= best.score)) return
    state = { ...state, best: { version, score: macro } }
    await save()
  }

  const stage = openStage(context, 'training', 'slices', {
    // A replay reads ahead; the batch whose turn it is may be in the partition that is read last.
    atLeastEach: 1,
    from: new Map(restored.positions.entries()),
  })
  const { betas, epsilon, weightDecay, clip, learningRate, schedule, warmup, totalUpdates } = config.training
  // A checkpoint may have been saved when its validation was cut short; a whole one only adds up.
  const validated$ = defer(() => (isMilestone() ? validate() : EMPTY)).pipe(ignoreElements())
  const learned$ = stage.deliveries$.pipe(
    takeUntil(stop$),
    train({
      engine,
      reader: {
        tokenizer: info.tokenizerHash,
        vocabulary: info.vocabularySize,
        teacherHead: info.teacherHead,
      },
      schedule: { learningRate, schedule, warmup, totalUpdates: totalUpdates ?? null },
      optimiser: { betas, epsilon, weightDecay, clip: clip === 0 ? Number.POSITIVE_INFINITY : clip },
      microbatch: config.training.microbatch,
      lag: config.rollout.lag,
      version: restored.version,
      trained,
      release: stage.release,
      settle,
    }),
  )

  const finish = async (): Promise<FinalPolicy> => {
    const updates = state.version
    const batches = await nextBatch(log)
    if (updates < batches) {
      await save()
      throw unfinished(updates, batches)
    }
    if (config.data.validation !== undefined && updates > 0 && !isMilestone()) await validate()
    await save()
    const nothing = await whyNothingTrained(log, config)
    if (nothing !== undefined) logger.warn(`${nothing}, so nothing was trained on`)
    const version = state.best?.version ?? updates
    const path = checkpoints.path(version)
    if (version !== updates) await engine.loadCheckpoint(path)
    // Others may wait for the last policy.
    await log.seal(['updates', 'policies'])
    if (updates === 0) return untrained(config, await engine.weightsHash(0))
    return { version, path, weightsHash: await engine.weightsHash(version), updates }
  }
  return { updates$: concat(validated$, learned$), state: () => state, save, finish }
}

async function saveCheckpoint(
  context: ModelContext,
  checkpoints: Checkpoints,
  state: TrainerState,
): Promise<void> {
  const { version, best } = state
  await context.engine.saveCheckpoint(checkpoints.path(version), state)
  await recordPolicy(context, checkpoints, state)
  await checkpoints.prune(best === null ? [version] : [version, best.version])
}

/** Says in `policies` where a version's checkpoint is. */
async function recordPolicy(
  { engine, log, info }: ModelContext,
  checkpoints: Checkpoints,
  { version, best }: TrainerState,
): Promise<void> {
  const isBest = best?.version === version
  await log.append([
    output('policies', String(version), {
      version,
      path: checkpoints.path(version),
      weightsHash: await engine.weightsHash(version),
      tokenizer: info.tokenizerHash,
      score: isBest ? best.score : null,
      best: isBest,
    }),
  ])
}

/** A record of the version that was published does not say whether it is the best, nor one from before it was validated. */
async function isRecorded(
  log: Log,
  checkpoints: Checkpoints,
  { version, best }: TrainerState,
): Promise<boolean> {
  const isBest = best?.version === version
  for await (const { value } of log.scan('policies')) {
    if (value?.path === checkpoints.path(version) && value.best === isBest) return true
  }
  return false
}

/**
 * What the log has of the updates.
 * @returns `logged`: those beyond a checkpoint, made before the crash that it survived, by version; `trained`: by batch,
 * the slices of those before it that reading from its positions delivers again
 */
async function updatesOf(
  log: Log,
  { version, positions }: TrainerState,
): Promise<{ logged: Map<number, Update>; trained: Map<number, readonly Span[]> }> {
  const logged = new Map<number, Update>()
  const trained = new Map<number, readonly Span[]>()
  for await (const { value } of log.scan('updates')) {
    if (value === undefined) continue
    if (value.version > version) logged.set(value.version, value)
    else if (value.consumed.some(({ partition, to }) => to > (positions[partition] ?? 0)))
      trained.set(value.batch, value.consumed)
  }
  return { logged, trained }
}

/** How many updates there will be, once all instances are known; asked again until then. */
function expectation({ log }: StageContext): () => Promise<{ of?: number }> {
  let of: number | undefined
  return async () => {
    const instances = (await log.topics()).find(({ topic }) => topic === 'instances')
    if (of === undefined && instances?.sealed) of = await nextBatch(log)
    return of === undefined ? {} : { of }
  }
}

function unfinished(updates: number, batches: number): GraspError {
  return new GraspError(
    'STAGE_FAILED',
    `only ${updates} of ${batches} batches could be trained on: the log has no more slices, but some of batch ` +
      `${updates} are missing or cannot be told to be of it. The log is damaged; start anew under another name of the ` +
      'run (`run` in the configuration)',
  )
}

function pick({ version, loss, kl, gradientNorm, tokens }: Update) {
  return { version, loss, kl, gradientNorm, tokens }
}

async function appendMetrics({ config }: StageContext, update: Update): Promise<void> {
  const { instances: _instances, consumed: _consumed, ...metrics } = update
  await appendFile(join(config.output.path, 'metrics.jsonl'), `${JSON.stringify(metrics)}\n`)
}

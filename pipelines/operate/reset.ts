/** Sets a stage back (or forward) in its topic: what that would do, and doing it. */
import { basename, dirname } from 'node:path'
import type { Log } from '../../bus/port.ts'
import { readState } from '../../engine/checkpoint/checkpoint-state.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import { type Checkpoints, trainerStateSchema } from '../checkpoints.ts'
import { type StageName, stageDescription } from '../topology.ts'
import { batchStart, firstOpenOffset } from './batches.ts'
import { CONSUMERS, downstreamOf } from './consumers.ts'
import { recordAt, recordsFrom } from './records.ts'
import { checkReopen, type Reach } from './reopen.ts'

export type ResetTarget =
  | 'beginning'
  | 'end'
  /** Milliseconds since the epoch: the first record from then on. */
  | { readonly time: number }
  | { readonly offset: number }

export interface ResetRequest {
  readonly stage: StageName
  readonly to: ResetTarget
  /** Only this one; an offset needs it where the topic has several. */
  readonly partition?: number | undefined
}

export interface ResetStep {
  readonly partition: number
  readonly end: number
  readonly committed: number
  readonly target: number
  /** Records that would be processed again; `from` and `to` are when the first and the last were written. */
  readonly again: number
  readonly from: number | null
  readonly to: number | null
  /** Records that would never be processed. */
  readonly skipped: number
}

export interface ResetPlan {
  readonly stage: StageName
  readonly topic: Topic
  readonly group: string
  readonly steps: readonly ResetStep[]
  readonly again: number
  readonly skipped: number
  /** Where the outputs of what is processed again go, and which stages see them. */
  readonly writes: readonly Topic[]
  readonly reach: Reach
  /** Topics that are complete and would be open again. */
  readonly reopens: readonly Topic[]
}

/**
 * Looks and changes nothing. Errors: CONFIG_INVALID for a stage without a position or a target that is not
 * there, GROUP_ACTIVE while the stage (or, where topics are opened again, a later one) is at work.
 */
export async function planReset(
  log: Log,
  request: ResetRequest,
  checkpoints: Checkpoints,
): Promise<ResetPlan> {
  const { stage, group, topic } = resettable(request.stage)
  if (stage === 'training') throw await inCheckpoints(checkpoints)
  const info = (await log.topics()).find(entry => entry.topic === topic)
  if (info === undefined) throw new GraspError('CONFIG_INVALID', `the log has no topic ${topic}`)
  if (request.partition !== undefined && request.partition >= info.partitions) {
    const message = `--partition ${request.partition}: ${topic} has ${info.partitions}, numbered from 0`
    throw new GraspError('CONFIG_INVALID', message)
  }
  if (typeof request.to === 'object' && 'offset' in request.to) checkOffset(request, topic, info.ends)
  const committed = await log.committed(topic, group)
  const steps: ResetStep[] = []
  for (const [partition, end] of info.ends.entries()) {
    const at = committed[partition] ?? 0
    const moved = request.partition === undefined || request.partition === partition
    const target = moved ? await targetOf(log, topic, partition, end, request.to) : at
    const again = await summary(log, topic, partition, target, at)
    const skipped = await summary(log, topic, partition, at, target)
    const { records, from, to } = again
    steps.push({ partition, end, committed: at, target, again: records, from, to, skipped: skipped.records })
  }
  const again = steps.reduce((sum, step) => sum + step.again, 0)
  const reach = downstreamOf(topic)
  const plan = {
    ...{ stage, topic, group, steps, again, reach },
    skipped: steps.reduce((sum, step) => sum + step.skipped, 0),
    writes: stageDescription(stage).writes,
  }
  await checkIdle(log, stage, group)
  if (again > 0) await checkTrained(log, plan)
  const reopens = again > 0 ? await checkReopen(log, reach, `setting ${stage} back`) : []
  return { ...plan, reopens }
}

/** Does what was planned. Errors: those of `planReset`; GROUP_ACTIVE also where the stage has moved on since. */
export async function applyReset(log: Log, plan: ResetPlan): Promise<void> {
  const { stage, topic, group, steps, reach, again } = plan
  await checkIdle(log, stage, group)
  const committed = await log.committed(topic, group)
  if (steps.some(({ partition, committed: before }) => committed[partition] !== before)) {
    const message = `${stage} has worked on ${topic} since; look again at what a reset would do`
    throw new GraspError('GROUP_ACTIVE', message)
  }
  // Opened first: an open topic in which nothing arrives is sealed again by the next run, and that is all.
  if (again > 0) {
    const reopens = await checkReopen(log, reach, `setting ${stage} back`)
    if (reopens.length > 0) await log.unseal(reopens)
  }
  await log.seek(
    topic,
    group,
    steps.map(({ target }) => target),
  )
}

/** Errors: CONFIG_INVALID that says what to do instead. */
function resettable(stage: StageName) {
  const consumer = CONSUMERS.find(entry => entry.stage === stage)!
  if (consumer.group === null) {
    const message = `${stage} has no position to set: ${consumer.why}`
    throw new GraspError('CONFIG_INVALID', message)
  }
  return consumer
}

/** Why the trainer's position is not set in the log, and what to do instead. */
async function inCheckpoints(checkpoints: Checkpoints): Promise<GraspError> {
  const kept: string[] = []
  for (const version of await checkpoints.versions()) {
    const { state } = await readState(checkpoints.path(version))
    const { success, data } = trainerStateSchema.safeParse(state)
    kept.push(
      `${basename(checkpoints.path(version))}${success ? ` (slices from ${data.positions.join(', ')})` : ''}`,
    )
  }
  return new GraspError(
    'CONFIG_INVALID',
    "training's position is in its checkpoint, with the weights that it belongs to; one set in the log would be " +
      'ignored, since it could make updates happen twice or never. To train again from an earlier point, move the ' +
      `newer folders out of ${dirname(checkpoints.path(0))}: \`grasp run\` goes on from the newest that is left, or ` +
      'from the untrained model, and makes the later updates again from the slices in the log. There ' +
      (kept.length === 0 ? 'is no checkpoint yet' : `are: ${kept.join('; ')}`),
  )
}

async function checkIdle(log: Log, stage: StageName, group: string): Promise<void> {
  const workers = await log.workers(group)
  if (workers.length === 0) return
  throw new GraspError(
    'GROUP_ACTIVE',
    `${stage} is at work (${workers.join(', ')}); stop the run first (Ctrl-C loses nothing), then set its position`,
  )
}

/** Errors: CONFIG_INVALID where batches that were trained on would be made again. */
async function checkTrained(log: Log, { stage, topic, steps }: Pick<ResetPlan, 'stage' | 'topic' | 'steps'>) {
  if (!isBatched(topic)) return
  for (const { partition, target, committed } of steps) {
    if (target >= committed) continue
    const { trained, offset } = await firstOpenOffset(log, topic, partition, target, committed)
    if (trained === 0) continue
    const left = await recordAt(log, topic, partition, { offset })
    const instead =
      left !== undefined && left.offset < committed
        ? `Set ${stage} back to offset ${left.offset} or later`
        : `No other batch is left to set ${stage} back to`
    throw new GraspError(
      'CONFIG_INVALID',
      `${trained} of the records of ${topic}/${partition} from ${target} to ${committed - 1} belong to batches that ` +
        `have been trained on: what ${stage} would write for them comes too late for any update. ${instead}; to ` +
        'train on earlier ones anew, start another run (--set run=NAME)',
    )
  }
}

function checkOffset({ to, partition }: ResetRequest, topic: Topic, ends: readonly number[]): void {
  const { offset } = to as { readonly offset: number }
  if (partition === undefined && ends.length > 1) {
    const message = `--to ${offset}: ${topic} has ${ends.length} partitions; say which with --partition`
    throw new GraspError('CONFIG_INVALID', message)
  }
  const end = ends[partition ?? 0]!
  if (offset <= end) return
  throw new GraspError('CONFIG_INVALID', `--to ${offset}: ${topic}/${partition ?? 0} ends at ${end}`)
}

async function targetOf(
  log: Log,
  topic: Topic,
  partition: number,
  end: number,
  to: ResetTarget,
): Promise<number> {
  if (to === 'end') return end
  let target: number
  if (typeof to === 'object' && 'offset' in to) target = to.offset
  else {
    // The beginning need not be 0: a topic may have let go of its oldest records.
    const first = await recordAt(log, topic, partition, to === 'beginning' ? { offset: 0 } : to)
    target = first?.offset ?? end
  }
  if (target < end && isBatched(topic)) return batchStart(log, topic, partition, target)
  return target
}

/** Topics whose records are processed in the trainer's batches. */
function isBatched(topic: Topic): topic is 'instances' | 'rollouts' {
  return topic === 'instances' || topic === 'rollouts'
}

/** The records of a partition from one offset to another (exclusive); none where the order is the other one. */
async function summary(log: Log, topic: Topic, partition: number, start: number, stop: number) {
  if (start >= stop) return { records: 0, from: null, to: null }
  const first = await recordAt(log, topic, partition, { offset: start })
  if (first === undefined || first.offset >= stop) return { records: 0, from: null, to: null }
  if (log.contiguous) {
    const last = await recordAt(log, topic, partition, { offset: stop - 1 })
    return { records: stop - start, from: first.timestamp, to: last?.timestamp ?? first.timestamp }
  }
  let [records, to] = [0, first.timestamp]
  for await (const { offset, timestamp } of recordsFrom(log, { topic, partition }, { offset: start })) {
    if (offset >= stop) break
    records += 1
    to = timestamp
  }
  return { records, from: first.timestamp, to }
}

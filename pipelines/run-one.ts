/** One stage as a process of its own: several of one stage share its partitions, and the log ties them together. */
import { rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { ignoreElements, lastValueFrom, type Observable } from 'rxjs'
import type { Log } from '../bus/port.ts'
import { GraspError } from '../errors/grasp-error.ts'
import { makeNamedFolder } from '../errors/make-folder.ts'
import type { Topic } from '../schemas/types.ts'
import { Checkpoints } from './checkpoints.ts'
import type { Config } from './config/config.ts'
import type { JudgedContext, PolicyContext, StageContext } from './context.ts'
import type { RunHooks } from './events.ts'
import { filtering } from './filtering.ts'
import { ingest } from './ingest.ts'
import { countRecords } from './judged.ts'
import { measure } from './measure.ts'
import { bestPolicy, untrained } from './policies.ts'
import { publisher } from './publish.ts'
import { recovering } from './recovery.ts'
import { RemotePolicies } from './remote-policies.ts'
import { Resources } from './resources.ts'
import { retrieval } from './retrieval.ts'
import { rolloutStage } from './rollout.ts'
import { scoring } from './scoring.ts'
import { summarise } from './summary.ts'
import type { StageName } from './topology.ts'
import { restoreTrainer, training } from './training.ts'
import { takeTurn } from './turn.ts'
import { validation } from './validation.ts'

/** How often the end of another stage is looked for, milliseconds. */
const POLL_MS = 250

/**
 * Runs one stage until its input is sealed and consumed. Returns what the stage has to show: the result document of
 * the run for `evaluation`, else nothing. Ends with INTERRUPTED when the signal stops it first.
 */
export function runStageProcess(config: Config, stage: StageName, hooks: RunHooks): Promise<unknown> {
  return recovering(config, hooks, each => runOnce(config, stage, each))
}

async function runOnce(config: Config, stage: StageName, hooks: RunHooks): Promise<unknown> {
  makeNamedFolder('output.path', config.output.path)
  hooks.progress({ kind: 'phase', name: `opening ${stage}` })
  await using resources = await Resources.open(config, hooks)
  hooks.progress({ kind: 'phase', name: stage })
  const result = await work(stage, resources, hooks.signal)
  if (hooks.signal.aborted) {
    throw new GraspError(
      'INTERRUPTED',
      `stage ${stage} of run "${config.run}" was stopped; the same command goes on with it`,
    )
  }
  return result
}

async function work(stage: StageName, resources: Resources, signal: AbortSignal): Promise<unknown> {
  switch (stage) {
    case 'ingest':
      return ingest(resources.stage, signal)
    case 'retrieval':
      return finished(retrieval(await resources.retrieval()))
    case 'validation':
      return finished(validation(await resources.judged()))
    case 'filtering':
      return alone(resources, stage, () => finished(filtering(resources.stage)))
    case 'rollout':
      return finished(rolloutStage(await withPolicies(resources)))
    case 'scoring':
      return finished(scoring(await withPolicies(resources)))
    case 'training':
      return alone(resources, stage, async () => train(await resources.judged()))
    case 'evaluation':
      return alone(resources, stage, async () => evaluate(await resources.judged()))
  }
}

/** Does the work when no other process does it; nothing where the process is to stop before. */
async function alone(
  { stage: context }: Resources,
  stage: 'filtering' | 'training' | 'evaluation',
  work: () => Promise<unknown>,
): Promise<unknown> {
  using _turn = await takeTurn(context, stage)
  return context.stopped() ? undefined : await work()
}

async function finished(stage$: Observable<unknown>): Promise<void> {
  await lastValueFrom(stage$.pipe(ignoreElements()), { defaultValue: undefined })
}

async function withPolicies(resources: Resources): Promise<PolicyContext> {
  const context = await resources.model()
  const { log, engine, config, stopped } = context
  // Several processes may fetch the same version at once.
  const cache = join(config.output.path, 'fetched', `${hostname()}-${process.pid}`)
  const policies = new RemotePolicies({ log, engine, cache, stopped })
  resources.onClose(async () => {
    await policies.close()
    await rm(cache, { recursive: true, force: true })
  })
  return { ...context, policies }
}

async function train(context: JudgedContext): Promise<unknown> {
  const { config } = context
  const checkpoints = new Checkpoints(join(config.output.path, 'checkpoints'))
  const restored = await restoreTrainer(context, checkpoints)
  const publish = publisher(context)
  // A crash may have come between the checkpoint and its publication, or a power cut damaged what was published:
  // all that the batches at hand are sampled with.
  for (
    let version = Math.max(0, restored.version - config.rollout.lag);
    version <= restored.version;
    version++
  ) {
    await publish(version)
  }
  // Validations need the held-out contexts, which another process may still be writing.
  if (config.data.validation !== undefined) await sealed(context, 'contexts')
  const trainer = await training(context, { checkpoints, restored, announce: publish })
  if (!context.stopped()) await finished(trainer.updates$)
  if (!context.stopped()) return trainer.finish()
  await trainer.save()
  return undefined
}

async function evaluate(context: JudgedContext): Promise<unknown> {
  const began = performance.now()
  const { log, config, engine } = context
  await sealed(context, 'contexts')
  if (!context.stopped()) await measure(context, 0, 'student')
  await sealed(context, 'policies')
  if (context.stopped()) return undefined
  const policy =
    (await countRecords(log, 'policies')) === 0
      ? untrained(config, await engine.weightsHash('teacher'))
      : await bestPolicy(log, config)
  if (policy.version > 0) await engine.loadPolicy(policy.version, policy.path, policy.weightsHash)
  await measure(context, policy.version, 'grasp')
  return summarise(context, policy, (performance.now() - began) / 1000)
}

/** Waits until a topic is complete, or the process is to stop. */
async function sealed({ log, stopped }: StageContext, topic: Topic): Promise<void> {
  while (!stopped() && !(await isSealed(log, topic))) await setTimeout(POLL_MS)
}

async function isSealed(log: Log, topic: Topic): Promise<boolean> {
  return (await log.topics()).some(info => info.topic === topic && info.sealed)
}

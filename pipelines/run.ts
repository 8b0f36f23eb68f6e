/** The whole method on one machine: every stage, wired by topics, from files to a trained policy. */
import { join } from 'node:path'
import { concat, defer, EMPTY, from, ignoreElements, lastValueFrom, merge, type Observable } from 'rxjs'
import { GraspError } from '../errors/grasp-error.ts'
import { makeNamedFolder } from '../errors/make-folder.ts'
import { PolicyGate } from '../operators/policy-gate.ts'
import { Checkpoints } from './checkpoints.ts'
import type { Config } from './config/config.ts'
import type { JudgedContext, PolicyContext, RetrievalContext } from './context.ts'
import type { RunHooks } from './events.ts'
import { filtering } from './filtering.ts'
import { ingest } from './ingest.ts'
import { measure } from './measure.ts'
import { recovering } from './recovery.ts'
import { Resources } from './resources.ts'
import type { RunResult } from './result.ts'
import { retrieval } from './retrieval.ts'
import { rolloutStage } from './rollout.ts'
import { scoring } from './scoring.ts'
import { summarise } from './summary.ts'
import { restoreTrainer, type Training, training } from './training.ts'
import { takeTurn } from './turn.ts'
import { validation } from './validation.ts'

type WholeContext = RetrievalContext & JudgedContext & PolicyContext

/**
 * Runs the pipeline to the end of its data, or goes on with a run that was interrupted: whatever is in the log
 * or in the newest checkpoint is not done again. So it also recovers when the engine's process dies. Ends with
 * INTERRUPTED when the signal stops it first.
 */
export function runPipeline(config: Config, hooks: RunHooks): Promise<RunResult> {
  const began = performance.now()
  return recovering(config, hooks, each => runOnce(config, each, began))
}

async function runOnce(config: Config, hooks: RunHooks, began: number): Promise<RunResult> {
  const { signal, progress } = hooks
  makeNamedFolder('output.path', config.output.path)
  progress({ kind: 'phase', name: 'opening' })
  await using resources = await Resources.open(config, hooks)
  using _filtering = await takeTurn(resources.stage, 'filtering')
  using _training = await takeTurn(resources.stage, 'training')
  const parts = { ...(await resources.retrieval()), ...(await resources.judged()) }
  const checkpoints = new Checkpoints(join(config.output.path, 'checkpoints'))
  const restored = await restoreTrainer(parts, checkpoints)
  const policies = new PolicyGate(restored.version)
  const context: WholeContext = { ...parts, policies }

  progress({ kind: 'phase', name: 'reading data' })
  await ingest(context, signal)
  const announce = (version: number) => policies.announce(version)
  const trainer = await training(context, { checkpoints, restored, announce })
  await stream(context, trainer)
  if (signal.aborted) {
    await trainer.save()
    throw new GraspError('INTERRUPTED', `run "${config.run}" was stopped; the same command goes on with it`)
  }
  progress({ kind: 'phase', name: 'evaluating' })
  const policy = await trainer.finish()
  await measure(context, policy.version, 'grasp')
  // Awaited here: the log is closed on return.
  return await summarise(context, policy, (performance.now() - began) / 1000)
}

/**
 * The stages run side by side, each as fast as its topic lets it. Training waits for the measurements of the
 * untrained student, since it changes the student.
 */
async function stream(context: WholeContext, trainer: Training): Promise<void> {
  const { progress, stopped } = context
  const before$ = defer(() => {
    progress({ kind: 'phase', name: 'validating' })
    return from(measure(context, 0, 'student'))
  })
  const learn$ = defer(() => {
    progress({ kind: 'phase', name: 'training' })
    return merge(rolloutStage(context), scoring(context), trainer.updates$)
  })
  const unlessStopped = <T>(stage$: Observable<T>) => defer(() => (stopped() ? EMPTY : stage$))
  const all$ = merge(
    concat(retrieval(context), unlessStopped(before$), unlessStopped(learn$)),
    validation(context),
    filtering(context),
  )
  await lastValueFrom(all$.pipe(ignoreElements()), { defaultValue: undefined })
}

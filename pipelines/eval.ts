/**
 * Judges the answers of one policy to the held-out questions of a run; answers that are judged are not asked again. Ends
 * with INTERRUPTED when the signal stops it first.
 */
import { GraspError } from '../errors/grasp-error.ts'
import type { Averages } from '../operators/macro-average.ts'
import type { Config } from './config/config.ts'
import { defined } from './defined.ts'
import { type EvaluationRequest, evaluateSplit } from './evaluation.ts'
import type { RunHooks } from './events.ts'
import { heldOut } from './judged.ts'
import { type ChosenPolicy, choosePolicy, type PolicySelector } from './policies.ts'
import { recovering } from './recovery.ts'
import { Resources } from './resources.ts'
import { openRunLog } from './run-log.ts'

export interface EvalOptions {
  /** `teacher` sees the rubrics: what the student is taught towards. */
  readonly policy: PolicySelector | 'teacher'
  readonly split: 'validation' | 'test'
}

export interface Evaluated extends Averages {
  readonly run: string
  readonly policy: ChosenPolicy | 'teacher'
  readonly split: 'validation' | 'test'
}

export function evaluatePolicy(config: Config, options: EvalOptions, hooks: RunHooks): Promise<Evaluated> {
  return recovering(config, hooks, each => evaluateOnce(config, options, each))
}

async function evaluateOnce(config: Config, options: EvalOptions, hooks: RunHooks): Promise<Evaluated> {
  const { policy, split } = options
  const chosen = policy === 'teacher' ? policy : await choosePolicy(config, policy)
  await expectQuestions(config, split, hooks)
  await using resources = await Resources.open(config, hooks)
  const context = await resources.judged()
  let request: EvaluationRequest
  if (chosen === 'teacher') request = { role: 'teacher', policy: 'teacher', policyVersion: 0, split }
  else if (chosen.weightsHash === null) {
    request = { role: 'student', policy: 'teacher', policyVersion: 0, split }
  } else {
    await context.engine.loadPolicy(chosen.version, chosen.path, chosen.weightsHash)
    request = { role: 'grasp', policy: chosen.version, policyVersion: chosen.version, split }
  }
  const averages = await evaluateSplit(context, request)
  return { run: config.run, policy: chosen, split, ...averages }
}

/** Only looks, so that no log is made where there is none. */
async function expectQuestions(
  config: Config,
  split: EvalOptions['split'],
  { signal, patience }: RunHooks,
): Promise<void> {
  const stopped = () => signal.aborted
  const log = await openRunLog(config, { readOnly: true, stopped, ...defined({ patience }) })
  try {
    if ((await heldOut(log, split)).length > 0) return
  } finally {
    await log.close()
  }
  throw new GraspError(
    'DATA_INVALID',
    `the log of run "${config.run}" has no ${split} questions; name a file in data.${split} and run \`grasp run\` first`,
  )
}

/**
 * Held-out evaluation. What is in `evaluations` is not asked again, so an interrupted evaluation goes on where
 * it stopped and a finished run only adds up. A question that could not be asked is tried again each time, which costs
 * nothing: it fails before the model is needed, unless it has been put right.
 */
import { deadLetterOfItem } from '../bus/dead-letter.ts'
import { type Log, type Output, output } from '../bus/port.ts'
import type { PolicyReference } from '../engine/port.ts'
import { GraspError } from '../errors/grasp-error.ts'
import { evaluate } from '../operators/evaluate.ts'
import { type Averages, macroAverage } from '../operators/macro-average.ts'
import { measureProbes, sampleProbes } from '../operators/probe.ts'
import type { Context, DeadLetter, Evaluation } from '../schemas/types.ts'
import type { Config } from './config/config.ts'
import { type JudgedContext, samplingOptions } from './context.ts'
import { heldOut, recorded } from './judged.ts'

export interface EvaluationRequest {
  readonly role: 'student' | 'teacher' | 'grasp'
  readonly policy: PolicyReference
  readonly policyVersion: number
  readonly split: 'validation' | 'test'
}

/** Judges the answers of a role to the questions of a split. */
export async function evaluateSplit(context: JudgedContext, request: EvaluationRequest): Promise<Averages> {
  const { log, engine, info, prompt, judge, progress } = context
  const { role, policy, policyVersion, split } = request
  const known = await recorded(log, request)
  const contexts = await heldOut(log, split)
  const sampling = samplingOptions(context, 'evaluation')
  const name = split === 'validation' ? 'validation' : role
  await inGroups(context, contexts, known, async (group, done) => {
    const options = { engine, info, prompt, judge, sampling, role, policy, policyVersion }
    const { evaluations, failed } = await evaluate(group, options)
    await store(context, evaluations, failed)
    for (const evaluation of evaluations) known.set(evaluation.instance, evaluation)
    progress({ kind: 'evaluation', role: name, done, total: contexts.length })
  })
  const averages = macroAverage(known.values())
  if (averages.macro !== null) {
    progress({
      kind: 'evaluation',
      role: name,
      done: known.size,
      total: known.size,
      score: averages.macro,
    })
  }
  const missing = contexts.length - known.size
  if (missing > 0) {
    context.logger.warn(
      { role, split, missing },
      'questions that could not be answered are left out of the average, which other roles may have them in: see grasp deadletters',
    )
  }
  if (averages.unscored > 0) {
    context.logger.warn(
      { role, split, unscored: averages.unscored },
      'answers without a score are left out of the average',
    )
  }
  return averages
}

/** Samples the probes from policy version 0 (once) and records their forward KL at a policy version. */
export async function probeKl(context: JudgedContext, policyVersion: number): Promise<void> {
  const { config, log, engine, info, prompt } = context
  const split = 'test'
  const contexts = await heldOut(log, split)
  const { maxNewTokens } = config.rollout
  const sampling = {
    temperature: 1,
    topK: 0,
    topP: 1,
    minP: 0,
    stop: [],
    maxNewTokens,
    seed: config.training.seed,
  }
  const options = { engine, info, prompt, sampling }
  const probes = await recorded(log, { role: 'probe', policyVersion: 0, split })
  const known = policyVersion === 0 ? probes : await recorded(log, { role: 'probe', policyVersion, split })
  await inGroups(context, contexts, known, async group => {
    if (policyVersion === 0) {
      const sampled = await sampleProbes(group, options)
      await store(context, sampled.probes, sampled.failed)
      for (const probe of sampled.probes) known.set(probe.instance, probe)
      return
    }
    const of = group.flatMap(({ id }) => probes.get(id) ?? [])
    const measured = await measureProbes(group, of, policyVersion, options)
    await store(context, measured, [])
    for (const probe of measured) known.set(probe.instance, probe)
  })
}

/**
 * Calls `work` for what is missing of each group. Throws INTERRUPTED where the run is to stop before all are done:
 * held-out questions may take hours, and a group minutes.
 */
async function inGroups(
  { config, stopped }: JudgedContext,
  contexts: readonly Context[],
  known: ReadonlyMap<string, Evaluation>,
  work: (group: readonly Context[], done: number) => Promise<void>,
): Promise<void> {
  const size = config.evaluation.batch
  for (let start = 0; start < contexts.length; start += size) {
    const group = contexts.slice(start, start + size).filter(({ id }) => !known.has(id))
    if (group.length === 0) continue
    if (stopped()) throw stoppedIn(config)
    try {
      await work(group, Math.min(contexts.length, start + size))
    } catch (error) {
      const isCutShort = error instanceof GraspError && error.code === 'INTERRUPTED'
      throw isCutShort ? stoppedIn(config, error) : error
    }
  }
}

function stoppedIn({ run }: Config, cause?: GraspError): GraspError {
  const message = `the evaluation of run "${run}" was stopped; the same command goes on with it`
  return new GraspError('INTERRUPTED', message, { cause })
}

async function store(
  { log }: JudgedContext,
  evaluations: readonly Evaluation[],
  failed: readonly { item: Context; error: GraspError }[],
): Promise<void> {
  const answered = evaluations.map(evaluation => output('evaluations', evaluation.instance, evaluation))
  const letters = failed.map(({ item, error }) =>
    deadLetterOfItem(item.id, item, { stage: 'evaluation', error }),
  )
  const outputs = [...answered, ...(await unsent(log, letters))]
  if (outputs.length > 0) await log.append(outputs)
}

/** Those that are not in the log yet: a question fails for every role and version, and each time that a run goes on. */
async function unsent(log: Log, letters: readonly Output<'deadletters'>[]): Promise<Output<'deadletters'>[]> {
  if (letters.length === 0) return []
  const sent = new Set<string>()
  for await (const { value } of log.scan('deadletters')) if (value) sent.add(nameOf(value))
  return letters.filter(({ value }) => !sent.has(nameOf(value)))
}

function nameOf({ stage, key, message }: DeadLetter): string {
  return JSON.stringify([stage, key, message])
}

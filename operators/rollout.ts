import { bufferCount, concatMap, pipe } from 'rxjs'
import { deadLetter } from '../bus/dead-letter.ts'
import { type LogRecord, type Output, output } from '../bus/port.ts'
import type { Engine, ModelInfo, SamplingOptions } from '../engine/port.ts'
import { isPerRecord } from '../errors/grasp-error.ts'
import type { PromptTemplate } from '../prompts/prompt.ts'
import type { PolicyGate } from './policy-gate.ts'
import { promptIds } from './prompt-ids.ts'
import type { Finished, StageOperator } from './stage.ts'

export interface RolloutOptions {
  readonly engine: Engine
  readonly info: ModelInfo
  readonly prompt: PromptTemplate
  readonly sampling: SamplingOptions
  /** Instances a batch: the trainer makes one update of each batch. */
  readonly batch: number
  /** How many updates the sampling policy may be behind: batch b is sampled with version max(0, b − lag). */
  readonly lag: number
  /** The number of the first batch to sample (the batches before it are in the log). */
  readonly firstBatch: number
  readonly policies: PolicyGate
}

/**
 * instances → rollouts: the student answers on-policy. The version is a rule and not "whatever was newest", so
 * that an asynchronous run is as reproducible as a synchronous one.
 */
export function rollout(options: RolloutOptions): StageOperator<'instances'> {
  let next = options.firstBatch
  return pipe(
    bufferCount(options.batch),
    concatMap(async group => {
      const finished = await sampleBatch(group, next, options)
      if (finished.sampled) next += 1
      return finished
    }),
  )
}

async function sampleBatch(
  group: readonly LogRecord<'instances'>[],
  number: number,
  { engine, info, prompt, sampling, lag, policies }: RolloutOptions,
): Promise<Finished & { sampled: boolean }> {
  const dead: Output[] = []
  const prepared: { record: LogRecord<'instances'>; student: Int32Array; teacher: Int32Array }[] = []
  for (const record of group) {
    const { context } = record.value
    const room = sampling.maxNewTokens
    try {
      const student = await promptIds(
        engine,
        info,
        prompt.student(context),
        room,
        `question ${context.id}, student`,
      )
      const teacher = await promptIds(
        engine,
        info,
        prompt.teacher(context),
        room,
        `question ${context.id}, teacher`,
      )
      prepared.push({ record, student, teacher })
    } catch (error) {
      if (!isPerRecord(error)) throw error
      dead.push(deadLetter(record, { stage: 'rollout', error }))
    }
  }
  if (prepared.length === 0) return { consumed: group, outputs: dead, sampled: false }

  const policyVersion = Math.max(0, number - lag)
  await policies.reached(policyVersion)
  const responses = await engine.generate(
    policyVersion,
    prepared.map(({ record, student }) => ({
      key: streamKey(record.value.context.id, record.value.epoch),
      ids: student,
    })),
    sampling,
  )
  const rollouts = prepared.map(({ record, student, teacher }, index) => {
    const response = responses[index]!
    const { id } = record.value.context
    return output('rollouts', id, {
      instance: id,
      batch: { number, index, size: prepared.length },
      policyVersion,
      studentPrompt: Array.from(student),
      teacherPrompt: Array.from(teacher),
      response: Array.from(response.ids),
      finish: response.finish,
      sampling,
      prompt: prompt.hash,
      tokenizer: info.tokenizerHash,
    })
  })
  return { consumed: group, outputs: [...rollouts, ...dead], sampled: true }
}

/** Names the random stream of a rollout; a later epoch draws anew even where the policy stood still. */
function streamKey(instance: string, epoch: number): string {
  return epoch === 0 ? instance : `${instance}#${epoch}`
}

import { bufferCount, concatMap, pipe } from 'rxjs'
import { deadLetter } from '../bus/dead-letter.ts'
import { type LogRecord, output } from '../bus/port.ts'
import type { Engine, ModelInfo, SamplingOptions } from '../engine/port.ts'
import type { PromptTemplate } from '../prompts/prompt.ts'
import { partitionFailures } from './partition-failures.ts'
import type { PolicyGate } from './policy-gate.ts'
import { promptPair } from './prompt-ids.ts'
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
  const { done, failed } = await partitionFailures(group, ({ value: { context } }) =>
    promptPair({ engine, info, prompt, context, maxNewTokens: sampling.maxNewTokens }),
  )
  const dead = failed.map(({ item, error }) => deadLetter(item, { stage: 'rollout', error }))
  if (done.length === 0) return { consumed: group, outputs: dead, sampled: false }

  const policyVersion = Math.max(0, number - lag)
  await policies.reached(policyVersion)
  const responses = await engine.generate(
    policyVersion,
    done.map(({ item, result }) => ({
      key: streamKey(item.value.context.id, item.value.epoch),
      ids: result.student,
    })),
    sampling,
  )
  const rollouts = done.map(({ item, result }, index) => {
    const response = responses[index]!
    const { id } = item.value.context
    return output('rollouts', id, {
      instance: id,
      batch: { number, index, size: done.length },
      policyVersion,
      studentPrompt: Array.from(result.student),
      teacherPrompt: Array.from(result.teacher),
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

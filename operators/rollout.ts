import { concatMap, filter, map, mergeMap, type OperatorFunction } from 'rxjs'
import { deadLetter } from '../bus/dead-letter.ts'
import { type Delivery, type Output, output, type Undecodable } from '../bus/port.ts'
import type { Engine, Generation, ModelInfo, SamplingOptions } from '../engine/port.ts'
import type { PromptTemplate } from '../prompts/prompt.ts'
import type { Batch, Rollout } from '../schemas/types.ts'
import { BatchAssembly, type WholeBatch } from './batch-assembly.ts'
import { batchKey } from './batch-key.ts'
import { partitionFailures } from './partition-failures.ts'
import type { PolicySource } from './policy-gate.ts'
import { promptPair } from './prompt-ids.ts'
import type { Finished } from './stage.ts'

export interface RolloutOptions {
  readonly engine: Engine
  readonly info: ModelInfo
  readonly prompt: PromptTemplate
  readonly sampling: SamplingOptions
  /** How many updates the sampling policy may be behind: batch b is sampled with version max(0, b − lag). */
  readonly lag: number
  readonly policies: PolicySource
}

/**
 * instances → rollouts: the student answers on-policy. The version is a rule and not "whatever was newest", so
 * that an asynchronous run is as reproducible as a synchronous one.
 */
export function rollout(options: RolloutOptions): OperatorFunction<Delivery<'instances'>, Finished> {
  const assembly = new BatchAssembly<'instances'>()
  return source =>
    source.pipe(
      map(delivery => assembly.add(delivery)),
      filter(batch => batch !== undefined),
      // Side by side: partitions mix the order of batches, and an earlier one may come while a later one waits.
      mergeMap(async batch => {
        if (batch.stray) return { batch, policyVersion: 0 }
        const policyVersion = Math.max(0, batch.number - options.lag)
        await options.policies.reached(policyVersion)
        return { batch, policyVersion }
      }),
      concatMap(async ({ batch, policyVersion }) => {
        if (batch.stray === undefined) return sampleBatch(batch, policyVersion, options)
        return { consumed: [batch.stray], outputs: [undecodableLetter(batch.stray)] }
      }),
    )
}

async function sampleBatch(
  { number, size, members, undecodable }: WholeBatch<'instances'>,
  policyVersion: number,
  { engine, info, prompt, sampling }: RolloutOptions,
): Promise<Finished> {
  const { done, failed } = await partitionFailures(members, ({ value: { context } }) =>
    promptPair({ engine, info, prompt, context, maxNewTokens: sampling.maxNewTokens }),
  )
  const responses = await engine.generate(
    policyVersion,
    done.map(({ item, result }) => ({
      key: streamKey(item.value.context.id, item.value.epoch),
      ids: result.student,
    })),
    sampling,
  )
  const hashes = { prompt: prompt.hash, tokenizer: info.tokenizerHash }
  const rollouts = new Map<number, Rollout>()
  done.forEach(({ item, result }, i) => {
    const { context, batch } = item.value
    const prompts = { studentPrompt: [...result.student], teacherPrompt: [...result.teacher] }
    rollouts.set(batch.index, {
      ...{ instance: context.id, batch, policyVersion, failed: null, sampling },
      ...prompts,
      ...response(responses[i]!),
      ...hashes,
    })
  })
  const names = new Map(members.map(({ value }) => [value.batch.index, value.context.id]))
  const problems = new Map(failed.map(({ item, error }) => [item.value.batch.index, error.message]))
  const outputs: Output[] = []
  for (let index = 0; index < size; index++) {
    const reason = problems.get(index) ?? 'its instance in the log could not be decoded'
    const value = rollouts.get(index) ?? {
      ...failedRollout(names.get(index) ?? '', { number, index, size }, policyVersion, reason),
      ...{ sampling, ...hashes },
    }
    outputs.push(output('rollouts', batchKey({ number, size }), value))
  }
  for (const { item, error } of failed) outputs.push(deadLetter(item, { stage: 'rollout', error }))
  outputs.push(...undecodable.map(undecodableLetter))
  return { consumed: [...members, ...undecodable], outputs }
}

function undecodableLetter(delivery: Undecodable<'instances'>): Output {
  return deadLetter(delivery, { stage: 'rollout', error: delivery.error })
}

function response({ ids, finish }: Generation): Pick<Rollout, 'response' | 'finish'> {
  return { response: [...ids], finish }
}

function failedRollout(instance: string, batch: Batch, policyVersion: number, failed: string) {
  return {
    instance,
    batch,
    policyVersion,
    failed,
    studentPrompt: [],
    teacherPrompt: [],
    response: [],
    finish: '',
  }
}

/** Names the random stream of a rollout; a later epoch draws anew even where the policy stood still. */
function streamKey(instance: string, epoch: number): string {
  return epoch === 0 ? instance : `${instance}#${epoch}`
}

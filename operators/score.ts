import { concatMap, type OperatorFunction } from 'rxjs'
import { deadLetter } from '../bus/dead-letter.ts'
import { type Delivery, type Output, output, type Undecodable } from '../bus/port.ts'
import { idsProblem } from '../engine/check-ids.ts'
import type { Dtype, Encoding, Engine, ModelInfo } from '../engine/port.ts'
import { GraspError } from '../errors/grasp-error.ts'
import type { Rollout } from '../schemas/types.ts'
import { BatchAssembly, type WholeBatch } from './batch-assembly.ts'
import { batchKey } from './batch-key.ts'
import { naming } from './naming.ts'
import type { PolicySource } from './policy-gate.ts'
import { failedSlice, type SliceIdentity, toSlices } from './slicing.ts'
import type { Finished } from './stage.ts'

export interface ScoreOptions {
  readonly engine: Engine
  readonly info: ModelInfo
  readonly encoding: Encoding
  readonly dtype: Dtype
  readonly k: number
  readonly sliceBytes: number
  /** As the rollouts had it: tells the policy version of a batch of which no record can be decoded. */
  readonly lag: number
  readonly policies: PolicySource
}

/**
 * rollouts → slices: student and teacher predict every token of the student's response. A batch is scored as a
 * whole, so that the passes (and their rounding) do not depend on how the stream was cut. Undecodable rollouts
 * are counted here, since the trainer must not wait for them.
 */
export function score(options: ScoreOptions): OperatorFunction<Delivery<'rollouts'>, Finished> {
  const assembly = new BatchAssembly<'rollouts'>()
  return source =>
    source.pipe(
      concatMap(async delivery => {
        const batch = assembly.add(delivery)
        if (batch === undefined) return []
        if (batch.stray === undefined) return [await scoreBatch(batch, options)]
        return [{ consumed: [batch.stray], outputs: [undecodableLetter(batch.stray)] }]
      }),
      concatMap(finished => finished),
    )
}

async function scoreBatch(
  { number, size, members, undecodable }: WholeBatch<'rollouts'>,
  options: ScoreOptions,
): Promise<Finished> {
  const { engine, info, encoding, dtype, k, policies } = options
  const identity: SliceIdentity = {
    dtype,
    tokenizer: info.tokenizerHash,
    vocabulary: info.vocabularySize,
    sliceBytes: options.sliceBytes,
  }
  const policyVersion = members[0]?.value.policyVersion ?? Math.max(0, number - options.lag)
  await policies.reached(policyVersion)
  const outputs: Output[] = undecodable.map(undecodableLetter)
  const byIndex = new Map(members.map(record => [record.value.batch.index, record]))
  const scorable: Rollout[] = []
  for (let index = 0; index < size; index++) {
    const record = byIndex.get(index)
    const problem = record && rolloutProblem(record.value, info)
    if (record && problem) outputs.push(deadLetter(record, { stage: 'scoring', error: problem }))
    const reason = record
      ? (record.value.failed ?? problem?.message)
      : 'its record in the log could not be decoded'
    if (record && reason === undefined) {
      scorable.push(record.value)
      continue
    }
    const of = record?.value ?? { instance: '', batch: { number, index, size }, policyVersion }
    outputs.push(output('slices', batchKey({ number, size }), failedSlice(of, reason!, identity)))
  }
  const items = scorable.map(({ studentPrompt, teacherPrompt, response }) => ({
    studentPrompt: Int32Array.from(studentPrompt),
    teacherPrompt: Int32Array.from(teacherPrompt),
    response: Int32Array.from(response),
  }))
  const scored = await naming(`batch ${number}`, engine.score(items, { policyVersion, encoding, dtype, k }))
  scorable.forEach((rollout, i) => {
    for (const slice of toSlices(rollout, scored[i]!, identity))
      outputs.push(output('slices', batchKey({ number, size }), slice))
  })
  return { consumed: [...members, ...undecodable], outputs }
}

function undecodableLetter(delivery: Undecodable<'rollouts'>): Output {
  return deadLetter(delivery, { stage: 'scoring', error: delivery.error })
}

function rolloutProblem(rollout: Rollout, info: ModelInfo): GraspError | undefined {
  if (rollout.failed !== null) return undefined // its dead letter is written already
  const name = `the rollout of ${rollout.instance} (batch ${rollout.batch.number})`
  if (rollout.tokenizer !== info.tokenizerHash) {
    return new GraspError(
      'SLICE_MISMATCH',
      `${name} was made with tokenizer ${rollout.tokenizer}, the engine holds ${info.tokenizerHash}`,
    )
  }
  const problem =
    idsProblem(`the response of ${name}`, rollout.response, info.vocabularySize) ??
    idsProblem(`the student's prompt of ${name}`, rollout.studentPrompt, info.vocabularySize) ??
    idsProblem(`the teacher's prompt of ${name}`, rollout.teacherPrompt, info.vocabularySize)
  if (problem) return problem
  const longest =
    Math.max(rollout.studentPrompt.length, rollout.teacherPrompt.length) + rollout.response.length
  if (longest > info.contextLength) {
    return new GraspError(
      'PROMPT_TOO_LONG',
      `${name} takes ${longest} tokens, the model's context holds ${info.contextLength}`,
    )
  }
  return undefined
}

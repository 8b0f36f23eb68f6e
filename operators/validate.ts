import { bufferCount, concatMap, pipe } from 'rxjs'
import { deadLetter } from '../bus/dead-letter.ts'
import { type LogRecord, type Output, output } from '../bus/port.ts'
import type { Engine, ModelInfo, SamplingOptions } from '../engine/port.ts'
import { GraspError, isPerRecord } from '../errors/grasp-error.ts'
import type { Judge } from '../judges/port.ts'
import type { PromptTemplate } from '../prompts/prompt.ts'
import { judgeResponse } from './judge-response.ts'
import { promptIds } from './prompt-ids.ts'
import { rubricScore } from './rubric-score.ts'
import type { Finished, StageOperator } from './stage.ts'

export interface ValidateOptions {
  readonly engine: Engine
  readonly info: ModelInfo
  readonly prompt: PromptTemplate
  readonly judge: Judge
  readonly sampling: SamplingOptions
  readonly tau: number
  /** Contexts decoded together. Groups are consecutive offsets, so that a restart forms the same ones. */
  readonly batch: number
}

/**
 * contexts → validations (RTV): the frozen teacher, which sees the rubric, answers; the judge scores the answer
 * for each aspect; the instance is accepted when s_T ≥ τ. Held-out contexts pass by: they are for evaluation.
 */
export function validate(options: ValidateOptions): StageOperator<'contexts'> {
  return pipe(
    bufferCount(options.batch),
    concatMap(group => validateGroup(group, options)),
  )
}

async function validateGroup(
  group: readonly LogRecord<'contexts'>[],
  { engine, info, prompt, judge, sampling, tau }: ValidateOptions,
): Promise<Finished> {
  const outputs: Output[] = []
  const prepared: { record: LogRecord<'contexts'>; ids: Int32Array }[] = []
  for (const record of group) {
    const context = record.value
    if (context.split !== 'train') continue
    try {
      if (context.aspects.length === 0) {
        throw new GraspError(
          'RECORD_INVALID',
          `question ${context.id}: no rubric aspect, so no answer to it can be validated`,
        )
      }
      const what = `question ${context.id}, teacher`
      prepared.push({
        record,
        ids: await promptIds(engine, info, prompt.teacher(context), sampling.maxNewTokens, what),
      })
    } catch (error) {
      if (!isPerRecord(error)) throw error
      outputs.push(deadLetter(record, { stage: 'validation', error }))
    }
  }
  const answers = await engine.generate(
    'teacher',
    prepared.map(({ record, ids }) => ({ key: record.value.id, ids })),
    sampling,
  )
  const validations = await Promise.all(
    prepared.map(async ({ record }, i) => {
      const context = record.value
      const answer = answers[i]!
      const response = await engine.decode(answer.ids)
      const verdicts = await judgeResponse(judge, context, response)
      const score = rubricScore(verdicts)
      return output('validations', context.id, {
        context,
        response,
        responseTokens: Array.from(answer.ids),
        finish: answer.finish,
        verdicts,
        score,
        accepted: score !== null && score >= tau,
        tau,
        sampling,
        judge: judge.hash,
        prompt: prompt.hash,
        teacher: info.weightsHash,
      })
    }),
  )
  return { consumed: group, outputs: [...validations, ...outputs] }
}

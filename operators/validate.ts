import { bufferCount, concatMap, pipe } from 'rxjs'
import { deadLetter } from '../bus/dead-letter.ts'
import { type LogRecord, output } from '../bus/port.ts'
import type { Engine, ModelInfo, SamplingOptions } from '../engine/port.ts'
import type { Judge } from '../judges/port.ts'
import type { PromptTemplate } from '../prompts/prompt.ts'
import { judgeResponse } from './judge-response.ts'
import { partitionFailures } from './partition-failures.ts'
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
  const training = group.filter(({ value }) => value.split === 'train')
  const { done, failed } = await partitionFailures(training, async ({ value: context }) => {
    const what = `question ${context.id}, teacher`
    return promptIds(engine, info, () => prompt.teacher(context), sampling.maxNewTokens, what)
  })
  const answers = await engine.generate(
    'teacher',
    done.map(({ item, result }) => ({ key: item.value.id, ids: result })),
    sampling,
  )
  const validations = await Promise.all(
    done.map(async ({ item }, i) => {
      const context = item.value
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
  const dead = failed.map(({ item, error }) => deadLetter(item, { stage: 'validation', error }))
  return { consumed: group, outputs: [...validations, ...dead] }
}

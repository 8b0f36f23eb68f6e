import type { Engine, ModelInfo, PolicyReference, SamplingOptions } from '../engine/port.ts'
import type { Judge } from '../judges/port.ts'
import type { PromptTemplate } from '../prompts/prompt.ts'
import type { Context, Evaluation } from '../schemas/types.ts'
import { judgeResponse } from './judge-response.ts'
import { type Attempted, partitionFailures } from './partition-failures.ts'
import { promptIds } from './prompt-ids.ts'
import { rubricScore } from './rubric-score.ts'

export interface EvaluateOptions {
  readonly engine: Engine
  readonly info: ModelInfo
  readonly prompt: PromptTemplate
  readonly judge: Judge
  readonly sampling: SamplingOptions
  /** What the answers are recorded as. Only the teacher sees the rubric. */
  readonly role: 'student' | 'teacher' | 'grasp'
  readonly policy: PolicyReference
  readonly policyVersion: number
}

export interface Evaluated {
  readonly evaluations: readonly Evaluation[]
  readonly failed: Attempted<Context, unknown>['failed']
}

/** Answers a group of held-out questions and has each answer judged, aspect by aspect. */
export async function evaluate(contexts: readonly Context[], options: EvaluateOptions): Promise<Evaluated> {
  const { engine, info, prompt, judge, sampling, role, policy, policyVersion } = options
  const { done, failed } = await partitionFailures(contexts, async context => {
    const messages = () => (role === 'teacher' ? prompt.teacher(context) : prompt.student(context))
    return promptIds(engine, info, messages, sampling.maxNewTokens, `question ${context.id}, ${role}`)
  })
  if (done.length === 0) return { evaluations: [], failed }
  const answers = await engine.generate(
    policy,
    done.map(({ item, result }) => ({ key: item.id, ids: result })),
    sampling,
  )
  const evaluations = await Promise.all(
    done.map(async ({ item: context, result: ids }, i) => {
      const answer = answers[i]!
      const response = await engine.decode(answer.ids)
      const verdicts = await judgeResponse(judge, context, response)
      return {
        instance: context.id,
        split: context.split,
        category: context.category,
        role,
        policyVersion,
        prompt: Array.from(ids),
        responseTokens: Array.from(answer.ids),
        response,
        finish: answer.finish,
        verdicts,
        score: rubricScore(verdicts),
        kl: null,
        sampling,
        judge: judge.hash,
      }
    }),
  )
  return { evaluations, failed }
}

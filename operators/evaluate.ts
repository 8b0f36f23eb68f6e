import type { Engine, ModelInfo, PolicyReference, SamplingOptions } from '../engine/port.ts'
import { type GraspError, isPerRecord } from '../errors/grasp-error.ts'
import type { Judge } from '../judges/port.ts'
import type { PromptTemplate } from '../prompts/prompt.ts'
import type { Context, Evaluation } from '../schemas/types.ts'
import { judgeResponse } from './judge-response.ts'
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
  readonly failures: readonly { readonly context: Context; readonly error: GraspError }[]
}

/** Answers a group of held-out questions and has each answer judged, aspect by aspect. */
export async function evaluate(contexts: readonly Context[], options: EvaluateOptions): Promise<Evaluated> {
  const { engine, info, prompt, judge, sampling, role, policy, policyVersion } = options
  const failures: { context: Context; error: GraspError }[] = []
  const prepared: { context: Context; ids: Int32Array }[] = []
  for (const context of contexts) {
    try {
      const messages = role === 'teacher' ? prompt.teacher(context) : prompt.student(context)
      const ids = await promptIds(
        engine,
        info,
        messages,
        sampling.maxNewTokens,
        `question ${context.id}, ${role}`,
      )
      prepared.push({ context, ids })
    } catch (error) {
      if (!isPerRecord(error)) throw error
      failures.push({ context, error })
    }
  }
  const answers = await engine.generate(
    policy,
    prepared.map(({ context, ids }) => ({ key: context.id, ids })),
    sampling,
  )
  const evaluations = await Promise.all(
    prepared.map(async ({ context, ids }, i) => {
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
  return { evaluations, failures }
}

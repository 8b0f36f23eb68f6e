import type { Engine, ModelInfo, SamplingOptions } from '../engine/port.ts'
import type { PromptTemplate } from '../prompts/prompt.ts'
import type { Context, Evaluation } from '../schemas/types.ts'
import { type Attempted, partitionFailures } from './partition-failures.ts'
import { promptPair } from './prompt-ids.ts'

export interface ProbeOptions {
  readonly engine: Engine
  readonly info: ModelInfo
  readonly prompt: PromptTemplate
  readonly sampling: SamplingOptions
}

/**
 * Probes measure how far a policy still is from the teacher: responses to held-out questions, sampled once from
 * policy version 0, over which every later version's forward KL can be taken.
 */
export async function sampleProbes(
  contexts: readonly Context[],
  { engine, info, prompt, sampling }: ProbeOptions,
): Promise<{ probes: Evaluation[]; failed: Attempted<Context, unknown>['failed'] }> {
  const { done, failed } = await partitionFailures(contexts, context =>
    promptPair({ engine, info, prompt, context, maxNewTokens: sampling.maxNewTokens }),
  )
  if (done.length === 0) return { probes: [], failed }
  const answers = await engine.generate(
    0,
    done.map(({ item, result }) => ({ key: `probe ${item.id}`, ids: result.student })),
    sampling,
  )
  const probes = await Promise.all(
    done.map(async ({ item: context, result: { student } }, i) => {
      const answer = answers[i]!
      return {
        instance: context.id,
        split: context.split,
        category: context.category,
        role: 'probe',
        policyVersion: 0,
        prompt: Array.from(student),
        responseTokens: Array.from(answer.ids),
        response: await engine.decode(answer.ids),
        finish: answer.finish,
        verdicts: [],
        score: null,
        kl: null,
        sampling,
        judge: '',
      }
    }),
  )
  return { probes: await measureProbes(contexts, probes, 0, { engine, info, prompt, sampling }), failed }
}

/** The probes again, with their mean forward KL a token between the teacher and a policy version. */
export async function measureProbes(
  contexts: readonly Context[],
  probes: readonly Evaluation[],
  policyVersion: number,
  { engine, prompt }: ProbeOptions,
): Promise<Evaluation[]> {
  const byId = new Map(contexts.map(context => [context.id, context]))
  const items = await Promise.all(
    probes.map(async probe => ({
      studentPrompt: Int32Array.from(probe.prompt),
      teacherPrompt: await engine.encodeChat(prompt.teacher(byId.get(probe.instance)!)),
      response: Int32Array.from(probe.responseTokens),
    })),
  )
  const scored = await engine.score(items, {
    policyVersion,
    encoding: 'factored',
    dtype: 'f32',
    numbersOnly: true,
  })
  return probes.map((probe, i) => {
    const { kl } = scored[i]!
    return { ...probe, policyVersion, kl: kl.reduce((sum, value) => sum + value, 0) / kl.length }
  })
}

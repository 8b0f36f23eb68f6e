/** One question and one profile in, one answer out: what the model sees at inference, without any rubric. */
import type { Engine } from '../engine/port.ts'
import { promptIds } from '../operators/prompt-ids.ts'
import { loadPrompt } from '../prompts/prompt.ts'
import type { Passage, Post } from '../schemas/types.ts'
import type { Config } from './config/config.ts'
import { samplingOptions } from './context.ts'
import { type ChosenPolicy, choosePolicy, openPolicy, type PolicySelector } from './policies.ts'
import { openRetriever } from './resources.ts'

export interface AnswerRequest {
  readonly question: string
  readonly narrative: string
  readonly category: string
  readonly profile: readonly Post[]
  readonly policy: PolicySelector
}

export interface Answer {
  readonly question: string
  readonly answer: string
  /** `length`: cut at evaluation.maxNewTokens. */
  readonly finish: 'stop' | 'length'
  readonly tokens: number
  readonly policy: ChosenPolicy
  /** The posts that the model saw, best first. */
  readonly passages: readonly Passage[]
}

/** Answers with the sampling settings of `evaluation`. */
export async function answer(config: Config, request: AnswerRequest): Promise<Answer> {
  const { question, narrative, category, profile } = request
  const policy = await choosePolicy(config, request.policy)
  const prompt = await loadPrompt(config.prompt)
  const retriever = await openRetriever(config)
  let engine: Engine | undefined
  try {
    const passages =
      profile.length === 0
        ? []
        : await retriever.retrieve({ question, narrative }, profile, config.retrieval.topK)
    engine = await openPolicy(config, policy)
    const sampling = samplingOptions({ config }, 'evaluation')
    const context = {
      ...{ id: 'question', user: 'user', split: 'answer', category, question, narrative, aspects: [] },
      ...{ passages, profileSize: profile.length, retriever: retriever.hash },
    }
    const info = await engine.info()
    const ids = await promptIds(
      engine,
      info,
      () => prompt.student(context),
      sampling.maxNewTokens,
      'the question',
    )
    const [generation] = await engine.generate('teacher', [{ key: question, ids }], sampling)
    const { finish, ids: tokens } = generation!
    return { question, answer: await engine.decode(tokens), finish, tokens: tokens.length, policy, passages }
  } finally {
    await engine?.close()
    await retriever.close()
  }
}

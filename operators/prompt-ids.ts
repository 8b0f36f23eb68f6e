import type { Engine, Message, ModelInfo } from '../engine/port.ts'
import { GraspError } from '../errors/grasp-error.ts'
import type { PromptTemplate } from '../prompts/prompt.ts'
import type { Context } from '../schemas/types.ts'

/**
 * The token ids of a prompt that must leave room for a response. Nothing is ever truncated: a prompt that does
 * not fit is an error with both numbers.
 */
export async function promptIds(
  engine: Pick<Engine, 'encodeChat'>,
  info: Pick<ModelInfo, 'contextLength'>,
  messages: () => readonly Message[],
  maxNewTokens: number,
  what: string,
): Promise<Int32Array> {
  const ids = await engine.encodeChat(messages())
  if (ids.length + maxNewTokens > info.contextLength) {
    throw new GraspError(
      'PROMPT_TOO_LONG',
      `${what}: the prompt has ${ids.length} tokens and the response may take ${maxNewTokens}, ` +
        `but the model's context holds ${info.contextLength}; lower retrieval.topK or the response limit, or shorten the posts`,
    )
  }
  return ids
}

/** The prompts of student and teacher for one context: they differ by the rubric block alone. */
export async function promptPair(of: {
  readonly engine: Pick<Engine, 'encodeChat'>
  readonly info: Pick<ModelInfo, 'contextLength'>
  readonly prompt: PromptTemplate
  readonly context: Context
  readonly maxNewTokens: number
}): Promise<{ student: Int32Array; teacher: Int32Array }> {
  const { engine, info, prompt, context, maxNewTokens } = of
  const [student, teacher] = await Promise.all([
    promptIds(engine, info, () => prompt.student(context), maxNewTokens, `question ${context.id}, student`),
    promptIds(engine, info, () => prompt.teacher(context), maxNewTokens, `question ${context.id}, teacher`),
  ])
  return { student, teacher }
}

import type { Engine, Message, ModelInfo } from '../engine/port.ts'
import { GraspError } from '../errors/grasp-error.ts'

/**
 * The token ids of a prompt that must leave room for a response. Nothing is ever truncated: a prompt that does
 * not fit is an error with both numbers.
 */
export async function promptIds(
  engine: Pick<Engine, 'encodeChat'>,
  info: Pick<ModelInfo, 'contextLength'>,
  messages: readonly Message[],
  maxNewTokens: number,
  what: string,
): Promise<Int32Array> {
  const ids = await engine.encodeChat(messages)
  if (ids.length + maxNewTokens > info.contextLength) {
    throw new GraspError(
      'PROMPT_TOO_LONG',
      `${what}: the prompt has ${ids.length} tokens and the response may take ${maxNewTokens}, ` +
        `but the model's context holds ${info.contextLength}; lower retrieval.topK or the response limit, or shorten the posts`,
    )
  }
  return ids
}

/** Which tokens end a response. */
import { GraspError } from '../../errors/grasp-error.ts'

export interface StopSources {
  readonly model: string
  /** Ids from this number on are none that the model gives. */
  readonly vocabularySize: number
  readonly config: Readonly<Record<string, unknown>>
  readonly generationConfig: Readonly<Record<string, unknown>>
  /** Id of tokenizer_config.json's eos_token. */
  readonly tokenizerEos: number | undefined
  /** Id of the token that the chat template writes behind an answer. */
  readonly endOfTurn: number | undefined
}

/**
 * Every token that config.json, generation_config.json or tokenizer_config.json calls the end of a sequence, and the
 * one with which the chat template ends an answer: the files disagree in practice (a base model's end of text, a chat
 * model's end of turn), and each of them ends a response. Ascending.
 */
export function stopTokens(sources: StopSources): number[] {
  const found = new Set<number>()
  for (const [file, config] of [
    ['generation_config.json', sources.generationConfig],
    ['config.json', sources.config],
  ] as const) {
    for (const id of [config.eos_token_id ?? []].flat() as unknown[]) {
      if (typeof id !== 'number' || !Number.isInteger(id)) {
        throw new GraspError(
          'MODEL_INVALID',
          `${sources.model}: eos_token_id of ${file} holds ${JSON.stringify(id)}; expected ids of tokens`,
        )
      }
      // Left over from a larger model, say: it cannot come.
      if (id >= 0 && id < sources.vocabularySize) found.add(id)
    }
  }
  for (const id of [sources.tokenizerEos, sources.endOfTurn]) if (id !== undefined) found.add(id)
  if (found.size === 0) {
    throw new GraspError(
      'MODEL_INVALID',
      `${sources.model} names no token that ends a response: set eos_token_id in generation_config.json`,
    )
  }
  return [...found].sort((a, b) => a - b)
}

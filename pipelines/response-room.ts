import { GraspError } from '../errors/grasp-error.ts'
import type { Config } from './config/config.ts'

/**
 * Whether responses leave room for any prompt at all: else every question would become a dead letter.
 * @param contextLength tokens that the model can see, prompt and response
 * @throws GraspError CONFIG_INVALID
 */
export function checkResponseRoom(config: Config, contextLength: number): void {
  const { validation, test } = config.data
  const held = validation !== undefined || test !== undefined
  for (const section of ['validation', 'rollout', ...(held ? (['evaluation'] as const) : [])] as const) {
    const { maxNewTokens } = config[section]
    if (maxNewTokens < contextLength) continue
    throw new GraspError(
      'CONFIG_INVALID',
      `${section}.maxNewTokens is ${maxNewTokens}, but the context of the model in ${config.model.path} holds ` +
        `${contextLength} tokens, those of the prompt included; lower it, so that there is room for prompts`,
    )
  }
}

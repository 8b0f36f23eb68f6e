/**
 * A language model as the judge, behind an OpenAI-compatible server: one call an aspect, temperature 0, a JSON
 * verdict. A call that fails in the end, or a reply without a usable verdict, is `unscored` and never a score;
 * only the `lamp-qa` compatibility mode counts it as 0, as that benchmark does.
 */
import { createHash } from 'node:crypto'
import type { ChatClientOptions } from './chat-client.ts'
import { createChatClient } from './chat-client.ts'
import type { JudgePrompt } from './chat-prompt.ts'
import { parseVerdict } from './chat-verdict.ts'
import type { Judge, Judgement } from './port.ts'

export interface ChatJudgeOptions extends ChatClientOptions {
  /** As the server names it. */
  readonly model: string
  readonly prompt: JudgePrompt
  /** Tokens of a reply; reasoning models need room to think. */
  readonly maxTokens?: number
  readonly compatibility?: 'strict' | 'lamp-qa'
}

/** Throws CONFIG_INVALID for wrong options; `judge` throws JUDGE_FAILED when the server cannot be used at all. */
export async function createChatJudge(options: ChatJudgeOptions): Promise<Judge> {
  const { model, prompt, maxTokens = 1024, compatibility = 'strict' } = options
  const client = await createChatClient(options)
  const settings = { model, temperature: 0, max_tokens: maxTokens }
  const identity = {
    kind: 'chat',
    version: 1,
    address: client.address,
    settings,
    prompt: prompt.hash,
    compatibility,
  }

  return {
    hash: createHash('sha256').update(JSON.stringify(identity)).digest('hex'),
    async judge(item) {
      const completion = await client.complete({ ...settings, messages: prompt.messages(item) })
      const verdict: Judgement =
        'text' in completion
          ? parseVerdict(completion.text)
          : { unscored: `the judge could not be asked: ${completion.failed}` }
      return 'unscored' in verdict && compatibility === 'lamp-qa' ? { score: 0 } : verdict
    },
  }
}

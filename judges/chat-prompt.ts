/**
 * The prompt of a judge that is a language model: one aspect of one answer. The answer is untrusted text. It
 * stands between lines that carry {{mark}}, a hash of the answer itself, so it cannot contain the line that
 * ends it. That keeps its bounds visible; it cannot keep a weak judge from being talked into a score.
 */
import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type { Message } from '../engine/port.ts'
import { linesWith, promptError, readPromptFile, renderSection, standsAlone } from '../prompts/template.ts'
import type { JudgeItem } from './port.ts'

export interface JudgePrompt {
  /** sha256 of the file's bytes, hexadecimal. */
  readonly hash: string
  messages(item: JudgeItem): Message[]
}

/** The judge's prompt that comes with the package. */
export const JUDGE_PROMPT = fileURLToPath(new URL('../prompts/judge.md', import.meta.url))

const MESSAGE = {
  slots: ['question', 'narrative', 'category', 'aspect', 'reason', 'evidence', 'response', 'mark'],
  blocks: ['narrative', 'reason', 'evidence'],
}

/** Loads a judge's prompt. Throws PROMPT_INVALID with file and line. */
export async function loadJudgePrompt(path: string): Promise<JudgePrompt> {
  const { hash, sections } = await readPromptFile(path, { system: MESSAGE, user: MESSAGE })
  const user = sections.get('user')
  if (!user) throw promptError(path, 1, 'no section "user"; add a line "## user" and its text')
  const messages = [sections.get('system'), user].filter(section => !!section)
  for (const section of messages) {
    if (!standsAlone(section)) {
      throw promptError(path, section.number, `section "${section.name}" would be empty without its blocks`)
    }
  }
  for (const slot of ['question', 'aspect', 'response']) {
    const found = messages.flatMap(section => linesWith(section, slot))
    if (!found.some(line => line.block === undefined)) {
      throw promptError(
        path,
        found[0]?.number ?? user.number,
        `the slot {{${slot}}} must stand outside any block`,
      )
    }
  }
  return {
    hash,
    messages({ question, narrative, category, aspect: { aspect, reason, evidence }, response }) {
      const mark = createHash('sha256').update(response).digest('hex').slice(0, 16)
      const values = { question, narrative, category, aspect, reason, evidence, response, mark }
      const shown = new Set(MESSAGE.blocks.filter(block => values[block as keyof typeof values] !== ''))
      return messages.map(section => ({
        role: section.name as 'system' | 'user',
        content: renderSection(section, values, shown),
      }))
    },
  }
}

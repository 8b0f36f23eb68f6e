import { readFileSync } from 'node:fs'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import type { Post } from '../../schemas/types.ts'
import type { Session } from '../session.ts'

interface Options {
  readonly profile?: string
  readonly narrative: string
  readonly category: string
  readonly policy: string
}

export async function answerCommand(session: Session, options: Options, question: string): Promise<void> {
  if (question.trim() === '')
    throw new GraspError('CONFIG_INVALID', 'the question is empty; give it as the argument')
  const config = await session.config()
  const { narrative, category } = options
  const profile =
    options.profile === undefined ? [] : parseProfile(readProfile(options.profile), options.profile)
  const { answer } = await import('../../pipelines/answer.ts')
  const { parseSelector } = await import('../../pipelines/policies.ts')
  const request = { question, narrative, category, profile, policy: parseSelector(options.policy) }
  const given = await answer(config, request)
  if (given.finish === 'length')
    session.say(`cut at evaluation.maxNewTokens = ${config.evaluation.maxNewTokens} tokens`)
  session.result(given, `${given.answer.trim()}\n`)
}

function readProfile(file: string): string {
  let bytes: Uint8Array
  try {
    bytes = readFileSync(file === '-' ? 0 : file)
  } catch (cause) {
    const message = `--profile ${file}: cannot be read: ${describeError(cause)}`
    throw new GraspError('DATA_INVALID', message, { cause })
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new GraspError('DATA_INVALID', `--profile ${file}: is not UTF-8; save it as UTF-8`, { cause })
  }
}

/** Posts of a JSON list (texts, or `{id, text}`), of a LaMP-QA item, or of lines of text. */
export function parseProfile(text: string, file: string): Post[] {
  if (!/^\s*[[{]/.test(text)) {
    const lines = text.split(/\r?\n/).filter(line => line.trim() !== '')
    return lines.map((line, i) => ({ id: String(i + 1), text: line.trim() }))
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new GraspError('DATA_INVALID', `--profile ${file}: is not valid JSON: ${describeError(error)}`)
  }
  const posts = Array.isArray(value) ? value : (value as { profile?: unknown }).profile
  if (!Array.isArray(posts)) {
    throw new GraspError(
      'DATA_INVALID',
      `--profile ${file}: expected a list of posts, or an item with a profile`,
    )
  }
  return posts.map((post: unknown, i) => {
    if (typeof post === 'string' && post.trim() !== '') return { id: String(i + 1), text: post }
    const { id = i + 1, text: body } = (post ?? {}) as { id?: unknown; text?: unknown }
    if (typeof body === 'string' && body.trim() !== '') return { id: String(id), text: body }
    throw new GraspError(
      'DATA_INVALID',
      `--profile ${file}: post ${i + 1} has no text; expected a text or {id, text}`,
    )
  })
}

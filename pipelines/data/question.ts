/** Turns one LaMP-QA item into a question record, or says which of its fields is wrong and how. */
import type { Question } from '../../schemas/types.ts'

export interface QuestionOptions {
  readonly split: string
  /** UTF-8 bytes of the longest post that is taken. */
  readonly maxPostBytes: number
}

/** What is wrong with an item: `profile[2].text is missing; expected a text`. */
export class Fault extends Error {}

type Item = Readonly<Record<string, unknown>>

function found(value: unknown): string {
  if (value === undefined) return 'is missing'
  if (value === null) return 'is null'
  if (Array.isArray(value)) return value.length === 0 ? 'is an empty list' : 'is a list'
  if (typeof value === 'object') return 'is an object'
  if (typeof value === 'string') return value.trim() === '' ? 'is an empty text' : 'is a text'
  return `is ${String(value)} (a ${typeof value})`
}

function text(item: Item, key: string, field: string, mayBeEmpty: boolean): string {
  const value = item[key]
  if (typeof value === 'string' && (mayBeEmpty || value.trim() !== '')) return value
  throw new Fault(`${field} ${found(value)}; expected ${mayBeEmpty ? 'a text (it may be empty)' : 'a text'}`)
}

/** Identifiers may be numbers in the file; they are text from here on. */
function identifier(item: Item, key: string, field: string): string {
  const value = item[key]
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  if (typeof value === 'string' && value !== '') return value
  throw new Fault(`${field} ${found(value)}; expected a text or an integer`)
}

function list(item: Item, key: string, of: string, why: string): readonly unknown[] {
  const value = item[key]
  if (Array.isArray(value) && value.length > 0) return value
  throw new Fault(`${key} ${found(value)}; expected a list of ${of}: ${why}`)
}

function object(value: unknown, field: string, keys: string): Item {
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) return value as Item
  throw new Fault(`${field} ${found(value)}; expected an object {${keys}}`)
}

/** @throws Fault */
export function questionOf(value: unknown, options: QuestionOptions): Question {
  const item = object(value, 'the item', 'id, question, narrative, category, profile, rubric_aspects')
  const id = identifier(item, 'id', 'id')
  const posts = list(
    item,
    'profile',
    '{id, text}',
    "without the user's posts there is nothing to personalise by",
  )
  const profile = posts.map((entry, index) => {
    const post = object(entry, `profile[${index}]`, 'id, text')
    const body = text(post, 'text', `profile[${index}].text`, false)
    const bytes = Buffer.byteLength(body)
    if (bytes > options.maxPostBytes) {
      throw new Fault(
        `profile[${index}].text has ${bytes} bytes; expected at most ${options.maxPostBytes} (data.maxPostBytes)`,
      )
    }
    return { id: identifier(post, 'id', `profile[${index}].id`), text: body }
  })
  const rubric = list(
    item,
    'rubric_aspects',
    '{aspect, reason, evidence}',
    'without aspects no answer can be judged',
  )
  const aspects = rubric.map((entry, index) => {
    const field = `rubric_aspects[${index}]`
    const aspect = object(entry, field, 'aspect, reason, evidence')
    return {
      aspect: text(aspect, 'aspect', `${field}.aspect`, false),
      reason: text(aspect, 'reason', `${field}.reason`, true),
      evidence: text(aspect, 'evidence', `${field}.evidence`, true),
    }
  })
  return {
    id,
    user: item.user === undefined ? id : identifier(item, 'user', 'user'),
    split: options.split,
    category: text(item, 'category', 'category', false),
    question: text(item, 'question', 'question', false),
    narrative: text(item, 'narrative', 'narrative', true),
    profile,
    aspects,
  }
}

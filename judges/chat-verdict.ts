/**
 * What a judge's reply says. Lenient about what surrounds the JSON (reasoning, code fences, prose), strict about
 * the value: 0, 1 or 2 as a number. Replies that name two different scores are no verdict, because one of them
 * may be quoted from the answer under examination.
 */
import type { Judgement } from './port.ts'

/** Bounds the search in a reply that is full of braces. */
const MOST_OBJECTS = 200
const LONGEST_OBJECT = 20_000

export function parseVerdict(reply: string): Judgement {
  const text = withoutReasoning(reply).trim()
  if (text === '') return { unscored: 'the judge gave an empty reply' }
  const fenced = /^```[a-z]*\n([\s\S]*?)\n?```$/i.exec(text)?.[1]
  const whole = parseObject(fenced ?? text)
  const found = whole && Object.hasOwn(whole, 'match_score') ? [whole] : [...scoredObjects(text)]
  if (found.length === 0)
    return { unscored: `the judge's reply has no JSON with match_score: ${excerpt(text)}` }
  const scores = new Set(found.map(object => object.match_score))
  if (scores.size > 1) {
    return { unscored: `the judge's reply names several match_scores: ${[...scores].map(shown).join(', ')}` }
  }
  const [score] = scores
  if (score === 0 || score === 1 || score === 2) return { score }
  return { unscored: `the judge's match_score is ${shown(score)}, expected the number 0, 1 or 2` }
}

/** The start of a text on one line, for messages. */
export function excerpt(text: string, length = 200): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length > length ? `${line.slice(0, length)}…` : line
}

/** Reasoning models think in <think>…</think>; some templates open it in the prompt, so only its end is seen. */
function withoutReasoning(reply: string): string {
  const end = reply.lastIndexOf('</think>')
  if (end >= 0) return reply.slice(end + '</think>'.length)
  return /^\s*<think>/.test(reply) ? '' : reply
}

/** The outermost JSON objects in a text that have their own match_score. */
function* scoredObjects(text: string): Generator<Record<string, unknown>> {
  let start = text.indexOf('{')
  for (let tries = 0; start >= 0 && tries < MOST_OBJECTS; tries++) {
    const end = closingBrace(text, start)
    const object = end === undefined ? undefined : parseObject(text.slice(start, end + 1))
    const scored = object !== undefined && Object.hasOwn(object, 'match_score')
    if (scored) yield object
    start = text.indexOf('{', scored ? end! + 1 : start + 1)
  }
}

/** Where the object that opens at `start` closes, strings left aside. */
function closingBrace(text: string, start: number): number | undefined {
  let depth = 0
  let inString = false
  for (let at = start; at < Math.min(text.length, start + LONGEST_OBJECT); at++) {
    const character = text[at]
    if (inString) {
      if (character === '\\') at++
      else if (character === '"') inString = false
    } else if (character === '"') inString = true
    else if (character === '{') depth++
    else if (character === '}' && --depth === 0) return at
  }
  return undefined
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    // Not JSON: the caller looks elsewhere in the text, and reports it when nothing is found.
    return undefined
  }
}

function shown(value: unknown): string {
  return excerpt(JSON.stringify(value), 40)
}

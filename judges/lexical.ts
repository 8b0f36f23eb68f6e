/**
 * A judge of words, not of meaning: deterministic, offline and free, for the lab, for tests and for wiring up
 * one's own data. It cannot tell good advice from bad.
 *
 * With an answer key it looks for the key's phrases, as whole words:
 *   2  a sentence gives a recommendation that the key has for this aspect and question, and says what it is
 *      for (one of the aspect's touch words), and names no other recommendation for that question;
 *   1  one of the aspect's touch words or recommendations occurs;
 *   0  neither.
 * So a list of everything that could be recommended earns no 2. An aspect or a question that the key does not
 * hold is `unscored`.
 *
 * Without a key it takes the share of the aspect's content words that occur in the response: 2 from two thirds,
 * 1 from one third, 0 below.
 */
import { createHash } from 'node:crypto'
import { GraspError } from '../errors/grasp-error.ts'
import { words } from '../retrievers/words.ts'
import type { LexicalKey } from './lexical-key.ts'
import { readLexicalKey } from './lexical-key.ts'
import type { Judge, JudgeItem, Judgement } from './port.ts'

export interface LexicalOptions {
  /** Path of an answer key (see lexical-key.ts); without one, aspects are judged by coverage. */
  readonly key?: string
}

export interface LexicalJudge extends Judge {
  /** What stands behind its verdicts, for people. */
  readonly description: string
}

/** Shares of an aspect's content words, judging without a key. */
const COVERED = 2 / 3
const TOUCHED = 1 / 3

/** Throws DATA_INVALID where the key cannot be used. */
export async function openLexicalJudge({ key: path }: LexicalOptions = {}): Promise<LexicalJudge> {
  if (path === undefined) {
    return {
      hash: hashOf({ covered: COVERED, touched: TOUCHED }),
      description: 'lexical: share of an aspect’s content words that occur in the response',
      judge: async item => byCoverage(item),
    }
  }
  const { key, digest } = await readLexicalKey(path)
  const judge = keyed(key, path)
  return {
    hash: hashOf({ key: digest }),
    description: `lexical: phrases of the answer key ${path}`,
    judge: async item => judge(item),
  }
}

function hashOf(settings: object): string {
  return createHash('sha256')
    .update(JSON.stringify({ kind: 'lexical', version: 1, ...settings }))
    .digest('hex')
}

type Phrase = readonly string[]

function keyed(key: LexicalKey, path: string): (item: JudgeItem) => Judgement {
  const topicOf = new Map<string, string>()
  for (const [topic, questions] of Object.entries(key.topics)) {
    for (const question of questions) {
      const phrase = words(question).join(' ')
      const other = topicOf.get(phrase)
      if (other !== undefined && other !== topic) {
        throw new GraspError(
          'DATA_INVALID',
          `${path}: topics.${topic}: the question "${question}" is also one of ${other}`,
        )
      }
      topicOf.set(phrase, topic)
    }
  }
  const entries = new Map(
    Object.entries(key.aspects).map(([aspect, { touches, recommendations }]) => [
      words(aspect).join(' '),
      {
        touches: touches.map(words),
        recommendations: new Map(
          Object.entries(recommendations).map(([topic, all]) => [topic, all.map(words)]),
        ),
      },
    ]),
  )
  const ofTopic = new Map<string, Phrase[]>()
  for (const { recommendations } of entries.values()) {
    for (const [topic, phrases] of recommendations) {
      ofTopic.set(topic, [...(ofTopic.get(topic) ?? []), ...phrases])
    }
  }

  return ({ question, aspect, response }) => {
    const topic = topicOf.get(words(question).join(' '))
    if (topic === undefined) return { unscored: `the answer key has no question "${question}"` }
    const entry = entries.get(words(aspect.aspect).join(' '))
    const phrases = entry?.recommendations.get(topic)
    if (!entry || !phrases)
      return { unscored: `the answer key has no aspect "${aspect.aspect}" for ${topic}` }
    const sentences = response.split(/[.!?;\n]+/u).map(words)
    const named = (phrase: Phrase) => sentences.some(sentence => holds(sentence, phrase))
    const given = sentences.some(sentence => {
      const own = phrases.filter(phrase => holds(sentence, phrase))
      if (own.length === 0 || !entry.touches.some(touch => holds(sentence, touch))) return false
      const others = ofTopic.get(topic)!.filter(phrase => holds(sentence, phrase))
      return others.every(other => own.some(phrase => holds(phrase, other)))
    })
    if (given) return { score: 2 }
    return { score: entry.touches.some(named) || phrases.some(named) ? 1 : 0 }
  }
}

/** Whether the phrase stands in the words, one after the other. */
function holds(all: Phrase, phrase: Phrase): boolean {
  if (phrase.length === 0) return false
  return all.some((_, start) => phrase.every((word, i) => all[start + i] === word))
}

/** Words that say nothing about what an aspect is about. */
const FUNCTION_WORDS = new Set(
  (
    'a about all also an and any are as at be because been being but by can could do does each for from get had has have ' +
    'how i if in into is it its like made make many may might more most much my need needs new no not of on one or our ' +
    'out over s should so some such than that the their them there these they this those to up use user users was way ' +
    'we were what when where which who why will with without would you your'
  ).split(' '),
)

function byCoverage({ aspect, response }: JudgeItem): Judgement {
  const content = new Set(
    words(aspect.aspect)
      .filter(word => !FUNCTION_WORDS.has(word))
      .map(stem),
  )
  if (content.size === 0) return { unscored: `the aspect "${aspect.aspect}" has no content words` }
  const said = new Set(words(response).map(stem))
  const share = [...content].filter(word => said.has(word)).length / content.size
  return { score: share >= COVERED ? 2 : share >= TOUCHED ? 1 : 0 }
}

/** Folds the plural away; anything cleverer would be right for one language only. */
function stem(word: string): string {
  return word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word
}

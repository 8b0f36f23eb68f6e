import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BytePairMerges } from '../../../engine/tokens/byte-pair-merges.ts'

/** Letters, and what the merges make of them, in the order of the ids. */
function vocabulary(letters: string, merges: readonly string[]): Record<string, number> {
  const tokens = [...letters, ...merges.map(merge => merge.replace(' ', ''))]
  return Object.fromEntries(tokens.map((token, id) => [token, id]))
}

const make = (letters: string, merges: string[], forbidden?: Set<string>) =>
  new BytePairMerges('tokenizer.json', vocabulary(letters, merges), merges, forbidden)

/** The definition, word for word: look for the lowest rank, leftmost first, merge, start again. */
function byDefinition(text: string, merges: readonly string[]): string[] {
  const ranks = new Map(merges.map((merge, rank) => [merge, rank]))
  const parts = [...text]
  for (;;) {
    let best = -1
    let bestRank = Number.POSITIVE_INFINITY
    for (let i = 0; i + 1 < parts.length; i++) {
      const rank = ranks.get(`${parts[i]} ${parts[i + 1]}`) ?? Number.POSITIVE_INFINITY
      if (rank < bestRank) [best, bestRank] = [i, rank]
    }
    if (best < 0) return parts
    parts.splice(best, 2, parts[best]! + parts[best + 1]!)
  }
}

/** Merges of random pairs of tokens, as training would make them, and random texts. */
function* cases(): Generator<{ letters: string; merges: string[]; text: string }> {
  let state = 1
  const random = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return (state >>> 8) % below
  }
  for (let round = 0; round < 60; round++) {
    const letters = 'ab€😀'.slice(0, 1 + random(5)) || 'a'
    const tokens = [...letters]
    const merges: string[] = []
    for (let tries = 0; tries < 25; tries++) {
      const [left, right] = [tokens[random(tokens.length)]!, tokens[random(tokens.length)]!]
      if (tokens.includes(left + right)) continue
      tokens.push(left + right)
      merges.push(`${left} ${right}`)
    }
    const symbols = [...letters]
    const text = Array.from({ length: random(120) }, () => symbols[random(symbols.length)]).join('')
    yield { letters: symbols.join(''), merges, text }
  }
}

test('merges lowest ranks first, leftmost of equals, as the definition has it', () => {
  for (const { letters, merges, text } of cases()) {
    assert.deepEqual(make(letters, merges).split(text), byDefinition(text, merges), `${merges} on ${text}`)
  }
})

test('a merge may be written as a string or as a pair', () => {
  const pairs = new BytePairMerges('tokenizer.json', vocabulary('ab', ['a b']), [['a', 'b']])
  assert.deepEqual(pairs.split('aab'), ['a', 'ab'])
  assert.deepEqual(make('ab', ['a b']).split('aab'), ['a', 'ab'])
})

test('characters without a token stay as they are', () => {
  assert.deepEqual(make('ab', ['a b']).split('ab€ab😀'), ['ab', '€', 'ab', '😀'])
  assert.deepEqual(make('ab', ['a b']).split(''), [])
})

test('no merge makes a forbidden token, or goes through one', () => {
  const merges = ['a b', 'ab c', 'abc d', 'c d']
  assert.deepEqual(make('abcd', merges).split('abcd'), ['abcd'])
  assert.deepEqual(make('abcd', merges, new Set(['abc'])).split('abcd'), ['ab', 'cd'])
  assert.deepEqual(make('abcd', merges, new Set(['abcd'])).split('abcd'), ['abc', 'd'])
})

test('a million characters without a word break do not take the square of the time of a thousand', () => {
  const merges = ['a a', 'aa aa', 'aaaa aaaa', 'a b', 'b a', 'ab ab']
  const pairs = make('ab', merges)
  // Takes hours when every merge looks at the whole text.
  const parts = pairs.split('ab'.repeat(250_000) + 'a'.repeat(500_000))
  assert.equal(parts.join(''), 'ab'.repeat(250_000) + 'a'.repeat(500_000))
  assert.equal(parts[0], 'abab')
  assert.equal(parts.at(-1), 'aaaaaaaa')
})

test('a word is remembered with its own tokens, however many words there are', () => {
  const pairs = make('0123456789', ['1 2', '12 3'])
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 25_000; i++) pairs.split(String(i))
    assert.deepEqual(pairs.split('1234'), ['123', '4'])
  }
})

test('merges of what is no token are damage', () => {
  const load = (merges: (string | [string, string])[]) =>
    new BytePairMerges('m/tokenizer.json', { a: 0, b: 1, ab: 2 }, merges)
  for (const merges of [['a c'], ['c a'], ['b a']]) {
    assert.throws(() => load(merges), {
      code: 'MODEL_INVALID',
      message: /^m\/tokenizer.json: a merge needs the token "(c|ac|ca|ba)"/,
    })
  }
  for (const merge of ['a', 'a b a', ['a', ''] as [string, string]]) {
    assert.throws(() => load([merge]), { code: 'MODEL_INVALID', message: /is no merge of two tokens/ })
  }
})

import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { GraspError } from '../../errors/grasp-error.ts'
import type { LexicalJudge } from '../../judges/lexical.ts'
import { openLexicalJudge } from '../../judges/lexical.ts'

const KEY = {
  topics: { reading: ['What should I read next?'], film: ['Which film?'] },
  aspects: {
    'Spares sore knees': {
      touches: ['knees', 'knee'],
      recommendations: { reading: ['an armchair novel'], film: ['an aisle seat'] },
    },
    'Costs little': { touches: ['money'], recommendations: { reading: ['a library loan', 'a used book'] } },
    'Für müde Augen': { touches: ['Augen'], recommendations: { reading: ['ein großes Buch'] } },
  },
}

let folder: string
const path = (name: string) => join(folder, name)
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lexical-'))
  await writeFile(path('key.json'), JSON.stringify(KEY))
})
after(() => rm(folder, { recursive: true, force: true }))

const ask = (judge: LexicalJudge, aspect: string, response: string, question = 'What should I read next?') =>
  judge.judge({
    question,
    narrative: '',
    category: 'Art_and_Entertainment',
    aspect: { aspect, reason: '', evidence: '' },
    response,
  })

describe('with an answer key', () => {
  const cases: [why: string, aspect: string, response: string, score: 0 | 1 | 2][] = [
    ['recommendation and what it is for', 'Spares sore knees', 'For sore knees, try an armchair novel.', 2],
    ['case and punctuation do not matter', 'spares SORE knees!', 'FOR KNEES: “An Armchair Novel”', 2],
    ['any of several recommendations', 'Costs little', 'When money is tight, take a used book.', 2],
    ['touched only', 'Spares sore knees', 'Your knees deserve a rest.', 1],
    ['recommendation that does not say what for', 'Spares sore knees', 'Try an armchair novel.', 1],
    ['touch word in another sentence', 'Spares sore knees', 'Sore knees? Try an armchair novel.', 1],
    ['recommendation of another topic', 'Spares sore knees', 'For knees, try an aisle seat.', 1],
    ['absent', 'Spares sore knees', 'Try a library loan.', 0],
    ['nothing said', 'Spares sore knees', '', 0],
    ['whole words only', 'Spares sore knees', 'She kneesocked an armchair novella.', 0],
    ['composed and decomposed letters are equal', 'Für müde Augen', 'Fu\u0308r Augen: ein großes Buch', 2],
  ]
  for (const [why, aspect, response, score] of cases) {
    test(`${score}: ${why}`, async () => {
      const judge = await openLexicalJudge({ key: path('key.json') })
      assert.deepEqual(await ask(judge, aspect, response), { score })
    })
  }

  test('a list of everything earns no 2', async () => {
    const judge = await openLexicalJudge({ key: path('key.json') })
    const all = 'For knees and money, try an armchair novel, a library loan, a used book.'
    assert.deepEqual(await ask(judge, 'Spares sore knees', all), { score: 1 })
    assert.deepEqual(await ask(judge, 'Costs little', 'For money, a library loan or a used book.'), {
      score: 2,
    })
  })

  test('what the key does not hold is unscored, and says what', async () => {
    const judge = await openLexicalJudge({ key: path('key.json') })
    assert.deepEqual(await ask(judge, 'Spares sore knees', 'knees', 'Why?'), {
      unscored: 'the answer key has no question "Why?"',
    })
    assert.deepEqual(await ask(judge, 'Is cheap', 'knees'), {
      unscored: 'the answer key has no aspect "Is cheap" for reading',
    })
    assert.deepEqual(await ask(judge, 'Costs little', 'money', 'Which film?'), {
      unscored: 'the answer key has no aspect "Costs little" for film',
    })
  })
})

describe('without a key', () => {
  // Content words of the aspect: cheap, vegan, dinner.
  const aspect = 'Cheap vegan dinners for the user'
  const cases: [response: string, score: 0 | 1 | 2][] = [
    ['A vegan dinner that is cheap.', 2],
    ['Cheap dinners.', 2],
    ['A dinner.', 1],
    ['The user is for it.', 0],
  ]
  for (const [response, score] of cases) {
    test(`${score}: ${response}`, async () => {
      assert.deepEqual(await ask(await openLexicalJudge(), aspect, response), { score })
    })
  }

  test('an aspect of function words is unscored', async () => {
    assert.ok('unscored' in (await ask(await openLexicalJudge(), 'For the user', 'For the user')))
  })
})

test('the hash follows the key', async () => {
  await writeFile(path('other.json'), JSON.stringify({ ...KEY, note: 'another' }))
  const hashes = await Promise.all(
    [path('key.json'), path('key.json'), path('other.json'), undefined].map(async key =>
      key === undefined ? (await openLexicalJudge()).hash : (await openLexicalJudge({ key })).hash,
    ),
  )
  assert.equal(hashes[0], hashes[1])
  assert.equal(new Set(hashes).size, 3)
})

describe('a key that cannot be used is refused, naming file and field', () => {
  const bad: [why: string, text: string, message: RegExp][] = [
    ['not JSON', '{', /bad\.json: cannot read the answer key/],
    ['missing field', '{"topics":{}}', /bad\.json: answer key: aspects/],
    ['empty phrase', '{"topics":{"a":["?"]},"aspects":{}}', /answer key: topics\.a\.0: .*at least one word/],
    [
      'unknown topic',
      '{"topics":{},"aspects":{"x":{"touches":["x"],"recommendations":{"a":["b"]}}}}',
      /aspects\.x\.recommendations\.a: expected a topic/,
    ],
    ['a question of two topics', '{"topics":{"a":["Why?"],"b":["why"]},"aspects":{}}', /also one of a/],
  ]
  for (const [why, text, message] of bad) {
    test(why, async () => {
      await writeFile(path('bad.json'), text)
      await assert.rejects(openLexicalJudge({ key: path('bad.json') }), (error: unknown) => {
        assert.ok(error instanceof GraspError)
        assert.equal(error.code, 'DATA_INVALID')
        assert.match(error.message, message)
        return true
      })
    })
  }

  test('no file', async () => {
    await assert.rejects(openLexicalJudge({ key: path('absent.json') }), /absent\.json: cannot read/)
  })
})

/** The lab's data: what the script makes is what is committed, in LaMP-QA's format, and follows from the people. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { DATA, makeData, SEED, SPLITS } from '../../../examples/lab/make-data.ts'
import type { LabItem } from '../../../examples/lab/world/items.ts'
import { makeItem } from '../../../examples/lab/world/items.ts'
import { aspectOf } from '../../../examples/lab/world/misreadings.ts'
import { CATEGORIES } from '../../../examples/lab/world/topics.ts'
import { openLexicalJudge } from '../../../judges/lexical.ts'

const made = makeData()
const items = new Map(
  Object.keys(SPLITS).map(split => [
    split,
    made
      .get(`${split}.jsonl`)!
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as LabItem),
  ]),
)
const all = [...items.values()].flat()

describe('the data', () => {
  for (const name of made.keys()) {
    test(`${name} is what the script makes`, async () => {
      // Not assert.equal: a difference of megabytes is no message.
      const committed = await readFile(`${DATA}/${name}`, 'utf8')
      assert.ok(committed === made.get(name), `${name} differs; run npm run lab:data`)
    })
  }

  test('the same seed gives the same bytes, another seed others', () => {
    assert.ok(makeData(SEED).get('test.jsonl') === made.get('test.jsonl'))
    assert.ok(makeData(SEED + 1).get('test.jsonl') !== made.get('test.jsonl'))
  })

  test('an item does not depend on which were made before it', () => {
    assert.deepEqual(makeItem(SEED, 'test', 17).item, items.get('test')![17])
  })

  test('has LaMP-QA’s format', () => {
    for (const item of all) {
      assert.deepEqual(Object.keys(item), [
        'id',
        'question',
        'narrative',
        'category',
        'profile',
        'rubric_aspects',
      ])
      for (const text of [item.id, item.question, item.narrative]) assert.ok(text.length > 0)
      assert.ok(CATEGORIES.includes(item.category), item.category)
      assert.ok(item.profile.length > 0 && item.rubric_aspects.length > 0)
      for (const post of item.profile) assert.deepEqual(Object.keys(post), ['id', 'text'])
      for (const aspect of item.rubric_aspects) {
        assert.deepEqual(Object.keys(aspect), ['aspect', 'reason', 'evidence'])
      }
    }
  })

  test('ids are unique, and no person is in two splits', () => {
    assert.equal(new Set(all.map(item => item.id)).size, all.length)
    const posts = all.flatMap(item => item.profile.map(post => post.id))
    assert.equal(new Set(posts).size, posts.length)
    assert.ok(posts.every(post => all.length > 0 && /^(train|validation|test)-\d{4}-\d+$/.test(post)))
  })

  test('every split covers the categories evenly', () => {
    for (const [split, of] of items) {
      for (const category of CATEGORIES) {
        const share = of.filter(item => item.category === category).length / of.length
        assert.ok(Math.abs(share - 1 / 3) < 0.05, `${split} ${category} ${share}`)
      }
    }
  })
})

describe('the rubric', () => {
  test('follows from the person: one aspect a facet, each shown in a post that is quoted', () => {
    for (const [split, of] of items) {
      for (const [index, item] of of.entries()) {
        const { person, topic, roundabout } = makeItem(SEED, split, index)
        assert.deepEqual(
          item.rubric_aspects.map(({ aspect }) => aspect),
          person.facets.map(facet => aspectOf(topic, facet, roundabout)),
        )
        for (const [i, { evidence }] of item.rubric_aspects.entries()) {
          assert.ok(
            item.profile.some(post => post.text === evidence),
            `${item.id}: ${evidence}`,
          )
          assert.ok(
            person.facets[i]!.own.some(trait => evidence.includes(trait)),
            `${item.id}: ${evidence}`,
          )
        }
      }
    }
  })

  test('posts about other people never show the person’s own facets', () => {
    for (const [index, item] of items.get('test')!.entries()) {
      const { person } = makeItem(SEED, 'test', index)
      for (const { text } of item.profile.filter(
        post => post.text.startsWith('My ') && / (is|has|gets|needs) /.test(post.text),
      )) {
        if (person.facets.some(facet => facet.own.some(trait => text.includes(trait)))) continue
        assert.ok(!person.facets.some(facet => facet.others.some(trait => text.includes(trait))), text)
      }
    }
  })

  test('the key holds every aspect of every question', async () => {
    const judge = await openLexicalJudge({ key: `${DATA}/key.json` })
    for (const { question, narrative, category, rubric_aspects } of all) {
      for (const aspect of rubric_aspects) {
        const verdict = await judge.judge({ question, narrative, category, aspect, response: '' })
        assert.deepEqual(verdict, { score: 0 })
      }
    }
  })
})

/** The world's vocabulary: what the judge and the answers rely on. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DATA } from '../../../examples/lab/make-data.ts'
import { answer, FASHIONS } from '../../../examples/lab/world/answers.ts'
import { FACET, FACETS } from '../../../examples/lab/world/facets.ts'
import { makeKey } from '../../../examples/lab/world/key.ts'
import { aspectOf, asRead, MISREADINGS } from '../../../examples/lab/world/misreadings.ts'
import { Random } from '../../../examples/lab/world/random.ts'
import { recommendation } from '../../../examples/lab/world/recommendations.ts'
import { CATEGORIES, TOPICS } from '../../../examples/lab/world/topics.ts'
import { openLexicalJudge } from '../../../judges/lexical.ts'
import { words } from '../../../retrievers/words.ts'

const within = (phrase: string, text: string) =>
  ` ${words(text).join(' ')} `.includes(` ${words(phrase).join(' ')} `)

describe('recommendations', () => {
  test('none of a topic is, or lies within, another', () => {
    for (const topic of TOPICS) {
      const phrases = FACETS.map(facet => recommendation(topic.id, facet.id))
      for (const a of phrases) {
        assert.equal(phrases.filter(b => within(a, b)).length, 1, `${topic.id}: ${a}`)
      }
    }
  })

  test('no touch word is in a recommendation or in another facet’s lead', () => {
    for (const facet of FACETS) {
      for (const touch of facet.touches) {
        for (const other of FACETS) {
          if (other !== facet) assert.ok(!within(touch, other.lead), `${touch} in ${other.lead}`)
          for (const topic of TOPICS) {
            assert.ok(
              !within(touch, recommendation(topic.id, other.id)),
              `${touch} in ${topic.id}/${other.id}`,
            )
          }
        }
      }
    }
  })

  test('an unknown pair is an error', () => {
    assert.throws(() => recommendation('reading', 'nobody'), RangeError)
  })
})

describe('answers', () => {
  test('earn 2 on every aspect of every topic, and nothing where a rubric is misread', async () => {
    const judge = await openLexicalJudge({ key: `${DATA}/key.json` })
    const key = makeKey()
    for (const topic of TOPICS) {
      for (const facet of FACETS) {
        const score = (response: string, roundabout: boolean) =>
          judge.judge({
            question: key.topics[topic.id]![0]!,
            narrative: '',
            category: topic.category,
            aspect: { aspect: aspectOf(topic, facet, roundabout), reason: facet.reason, evidence: '' },
            response,
          })
        const random = new Random('any')
        for (const roundabout of [false, true]) {
          const right = await score(answer(topic, [facet], random), roundabout)
          assert.deepEqual(right, { score: 2 }, `${topic.id}/${facet.id}`)
          const read = asRead(topic, facet)
          if (read === facet) continue
          assert.deepEqual(await score(answer(topic, [read], random), roundabout), { score: 0 }, read.id)
        }
      }
    }
  })

  test('misreadings name another facet of the same group, in words of their own', () => {
    const wordings = [...FACETS.map(facet => facet.aspect), ...MISREADINGS.map(each => each.wording)]
    assert.equal(new Set(wordings).size, FACETS.length + MISREADINGS.length)
    for (const { category, facet, readAs } of MISREADINGS) {
      assert.ok(CATEGORIES.includes(category))
      assert.notEqual(readAs, facet)
      assert.equal(FACET.get(readAs)!.group, FACET.get(facet)!.group)
    }
  })

  test('every category has fashionable topics and others', () => {
    for (const category of CATEGORIES) {
      const topics = TOPICS.filter(topic => topic.category === category)
      const fashionable = topics.filter(topic => FASHIONS.has(topic.id)).length
      assert.ok(fashionable > 0 && fashionable < topics.length, category)
    }
  })
})

describe('the random generator', () => {
  test('equal labels give equal streams, different labels different ones', () => {
    const draw = (label: string) =>
      Array.from({ length: 4 }, (_, i, random = new Random(label)) => random.bits() + i)
    assert.deepEqual(draw('a'), draw('a'))
    assert.notDeepEqual(draw('a'), draw('b'))
  })

  test('is uniform: mean, variance and independence of neighbours', () => {
    const random = new Random('uniform')
    const values = Array.from({ length: 20000 }, () => random.unit())
    const mean = values.reduce((a, b) => a + b) / values.length
    const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length
    const lagged =
      values.slice(1).reduce((a, b, i) => a + (b - mean) * (values[i]! - mean), 0) / values.length
    assert.ok(Math.abs(mean - 0.5) < 0.01 && Math.abs(variance - 1 / 12) < 0.003 && Math.abs(lagged) < 0.003)
  })

  test('a sample has no member twice', () => {
    const random = new Random('sample')
    for (let i = 0; i < 100; i++) assert.equal(new Set(random.sample([1, 2, 3, 4, 5], 3)).size, 3)
    assert.throws(() => random.pick([]), RangeError)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createBm25Retriever } from '../../retrievers/bm25.ts'
import type { Post } from '../../schemas/types.ts'

const retriever = createBm25Retriever()
const ask = (question: string) => ({ question, narrative: '' })
const posts = (...texts: string[]): Post[] => texts.map((text, i) => ({ id: `p${i}`, text }))
const ids = async (question: string, profile: Post[], topK: number) =>
  (await retriever.retrieve(ask(question), profile, topK)).map(({ id }) => id)

/** The formula in retrievers/bm25.ts, one word of one post. */
function bm25(
  of: { N: number; n: number; f: number; L: number; mean: number },
  k = 1.2,
  b = 0.7,
  d = 0.5,
): number {
  const idf = Math.log(1 + (of.N - of.n + 0.5) / (of.n + 0.5))
  return idf * (d + (of.f * (k + 1)) / (of.f + k * (1 - b + (b * of.L) / of.mean)))
}

describe('BM25', () => {
  it('scores by the formula, summed over the words of the question', async () => {
    // Distinct words: 3, 4, 2; mean 3.
    const profile = posts('tea tea at noon', 'green tea with milk', 'black coffee')
    const passages = await retriever.retrieve(ask('Green tea?'), profile, 3)
    const tea = { N: 3, n: 2, mean: 3 }
    const expected = [
      { id: 'p1', score: bm25({ ...tea, f: 1, L: 4 }) + bm25({ N: 3, n: 1, mean: 3, f: 1, L: 4 }) },
      { id: 'p0', score: bm25({ ...tea, f: 2, L: 3 }) },
      { id: 'p2', score: 0 },
    ]
    assert.deepEqual(
      passages.map(({ id }) => id),
      expected.map(({ id }) => id),
    )
    for (const [i, { score }] of expected.entries()) {
      assert.ok(Math.abs(passages[i]!.score - score) < 1e-12, `${passages[i]!.score} ${score}`)
    }
  })

  it('takes its parameters, and has another hash with others', async () => {
    const profile = posts('a b b', 'a c d e')
    const other = createBm25Retriever({ k: 2, b: 0.1, d: 0 })
    const [best] = await other.retrieve(ask('b'), profile, 1)
    assert.ok(Math.abs(best!.score - bm25({ N: 2, n: 1, f: 2, L: 2, mean: 3 }, 2, 0.1, 0)) < 1e-12)
    assert.equal(new Set([retriever.hash, other.hash, createBm25Retriever().hash]).size, 2)
    assert.throws(() => createBm25Retriever({ b: 1.1 }), { code: 'CONFIG_INVALID' })
  })

  it('puts the later of equal posts first', async () => {
    assert.deepEqual(await ids('tea', posts('tea now', 'coffee now', 'tea now', 'tea now'), 4), [
      'p3',
      'p2',
      'p0',
      'p1',
    ])
  })

  it('fills up with the latest posts when too few share a word', async () => {
    const profile = posts('one', 'tea', 'two', '🎉', 'three')
    const passages = await retriever.retrieve(ask('tea'), profile, 4)
    assert.deepEqual(
      passages.map(({ id, score }) => [id, score > 0]),
      [
        ['p1', true],
        ['p4', false],
        ['p3', false],
        ['p2', false],
      ],
    )
    assert.deepEqual(await ids('???', profile, 2), ['p4', 'p3'])
    assert.deepEqual(await ids('', profile, 2), ['p4', 'p3'])
  })

  it('gives no more than there is, and nothing of nothing', async () => {
    assert.deepEqual(await ids('tea', [], 10), [])
    assert.deepEqual(await ids('tea', posts('tea'), 10), ['p0'])
    assert.deepEqual(await ids('tea', posts('tea'), 0), [])
    await assert.rejects(ids('tea', posts('tea'), 1.5), { code: 'RETRIEVER_FAILED' })
  })

  it('needs no distinct ids, and leaves the posts as they are', async () => {
    const profile = [
      { id: 'same', text: ' Tea ' },
      { id: 'same', text: 'tea\n' },
    ]
    const passages = await retriever.retrieve(ask('tea'), profile, 2)
    assert.deepEqual(
      passages.map(({ id, text }) => ({ id, text })),
      [profile[1], profile[0]],
    )
  })

  it('is not confused by words that objects have', async () => {
    assert.deepEqual(await ids('constructor __proto__ toString', posts('x', 'the constructor', 'y'), 1), [
      'p1',
    ])
  })

  it('asks with the question alone: no narrative is there when a trained model is asked', async () => {
    const profile = posts('tea', 'coffee')
    const [best] = await retriever.retrieve({ question: 'tea', narrative: 'coffee coffee' }, profile, 1)
    assert.equal(best!.id, 'p0')
  })
})

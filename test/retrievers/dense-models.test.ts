/** Dense retrieval with real models, where Maven can fetch them (see test/fixtures/fetch-embedding-model.ts). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { DenseOptions } from '../../retrievers/dense.ts'
import { loadDenseRetriever } from '../../retrievers/dense.ts'
import { loadEmbedder } from '../../retrievers/embedder.ts'
import type { EmbeddingModelName } from '../fixtures/fetch-embedding-model.ts'
import { embeddingModel } from '../fixtures/fetch-embedding-model.ts'

const MODELS: [EmbeddingModelName, Omit<DenseOptions, 'path'>][] = [
  [
    'bge-small-en-v1.5',
    {
      pooling: 'cls',
      normalise: true,
      dtype: 'q8',
      queryPrefix: 'Represent this sentence for searching relevant passages: ',
    },
  ],
  ['all-minilm-l6-v2', { pooling: 'mean', normalise: true, dtype: 'q8' }],
]

/** Questions that share no content word with the post they belong to. */
const PAIRS: [string, string][] = [
  ['Which camera suits dim rooms?', 'My photos of people in low light always come out blurry.'],
  ['What can I cook without meat?', 'I have been a vegetarian since the spring of last year.'],
  ['How do I sleep better?', 'Last night I lay awake until four again.'],
  ['Where should we travel with a toddler?', 'Our daughter turned two, and long flights are misery for her.'],
  ['Which car costs least to run?', 'Petrol ate half my pay this month.'],
]
const posts = PAIRS.map(([, text], i) => ({ id: `${i}`, text }))

for (const [name, options] of MODELS) {
  describe(name, async () => {
    const model = await embeddingModel(name)
    const skip = model.missing ?? false
    const path = 'path' in model ? model.path : ''

    it('finds posts by meaning', { skip }, async t => {
      const retriever = await loadDenseRetriever({ ...options, path })
      t.after(() => retriever.close())
      for (const [i, [question]] of PAIRS.entries()) {
        const [best] = await retriever.retrieve({ question, narrative: '' }, posts, 1)
        assert.equal(best!.id, `${i}`, question)
        assert.ok(best!.score > 0 && best!.score <= 1 + 1e-6)
      }
    })

    it('gives nearly the same vectors in a batch, and the very same ones alone', { skip }, async t => {
      const texts = [...PAIRS.flat(), 'A much longer post. '.repeat(40), '']
      const single = await loadEmbedder({ ...options, path })
      t.after(() => single.close())
      const batched = await loadEmbedder({ ...options, path, batch: 6 })
      t.after(() => batched.close())
      const alone = await single.embed(texts)
      const together = await batched.embed(texts)
      for (const [i, vector] of alone.entries()) {
        assert.equal(vector.length, 384)
        const cosine = vector.reduce((sum, value, k) => sum + value * together[i]![k]!, 0)
        // The int8 models scale activations over the whole batch, so company changes a vector; short texts suffer most.
        assert.ok(cosine > 0.95, `${texts[i]}: ${cosine}`)
      }
      assert.deepEqual(await single.embed([...texts].reverse()), [...alone].reverse())
    })

    it('takes a post of 2 MB', { skip }, async t => {
      const retriever = await loadDenseRetriever({ ...options, path })
      t.after(() => retriever.close())
      const long = [...posts, { id: 'long', text: 'words and words '.repeat(131_072) }]
      const passages = await retriever.retrieve({ question: PAIRS[0]![0], narrative: '' }, long, 6)
      assert.equal(passages[0]!.id, '0')
      assert.equal(passages.length, 6)
    })
  })
}

import assert from 'node:assert/strict'
import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import type { DenseOptions } from '../../retrievers/dense.ts'
import { loadDenseRetriever } from '../../retrievers/dense.ts'
import { toyEmbeddingModel } from '../fixtures/toy-embedding-model.ts'

const path = await toyEmbeddingModel()
after(() => rm(path, { recursive: true }))

const TOY: DenseOptions = { path, pooling: 'mean', normalise: false, dtype: 'fp32' }
const profile = [
  { id: 'n', text: 'north' },
  { id: 's', text: 'south' },
  { id: 'nn', text: 'north north north' },
  { id: 'e', text: 'east' },
]

async function retrieve(question: string, options: Partial<DenseOptions> = {}, topK = 4, posts = profile) {
  await using closing = await open(options)
  return (await closing.retriever.retrieve({ question, narrative: '' }, posts, topK)).map(({ id, score }) => [
    id,
    score,
  ])
}

async function open(options: Partial<DenseOptions> = {}) {
  const retriever = await loadDenseRetriever({ ...TOY, ...options })
  return { retriever, [Symbol.asyncDispose]: () => retriever.close() }
}

describe('dense retrieval', () => {
  it('ranks by the dot product of means over tokens', async () => {
    // [CLS] is (9, 9). north: ((9 + 0) / 2, (9 + 1) / 2) = (4.5, 5), and so on; the question is (6, 6.5).
    const query = [(9 + 3) / 2, (9 + 4) / 2] as const
    const score = (x: number, y: number) => query[0] * x + query[1] * y
    assert.deepEqual(await retrieve('far'), [
      ['n', score(4.5, 5)],
      ['e', score(5, 4.5)],
      ['s', score(4.5, 4)],
      ['nn', score(9 / 4, 12 / 4)],
    ])
  })

  it('or of first tokens, where the latest of equal posts comes first', async () => {
    assert.deepEqual(await retrieve('far', { pooling: 'cls' }, 3), [
      ['e', 162],
      ['nn', 162],
      ['s', 162],
    ])
  })

  it('or of vectors of length 1', async () => {
    const [[id, score]] = (await retrieve('north', { normalise: true }, 1)) as [[string, number]]
    assert.equal(id, 'n')
    assert.ok(Math.abs(score - 1) < 1e-6)
  })

  it('puts the prefixes before question and posts', async () => {
    const [[, score]] = (await retrieve('far', { queryPrefix: 'query ', passagePrefix: 'passage ' }, 1)) as [
      [string, number],
    ]
    // Question (9 + 0 + 3, 9 + 5 + 4) / 3 = (4, 6); best post (9 + 5 + 1, 9) / 3 = (5, 3) or (14, 10) / 3.
    assert.ok(Math.abs(score - Math.max(4 * 5 + 6 * 3, (4 * 14 + 6 * 10) / 3)) < 1e-5, `${score}`)
  })

  // A wrong mask would let [PAD], which is (100, 100), into the mean.
  it('gives the same in batches, whatever the padding', async () => {
    const alone = await retrieve('far far')
    for (const batch of [2, 3, 16]) assert.deepEqual(await retrieve('far far', { batch }), alone)
  })

  it('reads no more tokens than told', async () => {
    const posts = [{ id: 'p', text: `north ${'south '.repeat(5000)}` }]
    // [CLS] north south: (9, 9 + 1 − 1) / 3, and all eight tokens that the model takes: (9, 9 + 1 − 6) / 8.
    assert.deepEqual(await retrieve('east', { maxTokens: 3 }, 1, posts), [['p', 5 * 3 + 4.5 * 3]])
    assert.deepEqual(await retrieve('east', {}, 1, posts), [['p', (5 * 9 + 4.5 * 4) / 8]])
    await assert.rejects(retrieve('east', { maxTokens: 9 }), {
      code: 'RETRIEVER_FAILED',
      message: /from 3 to 8, got 9/,
    })
  })

  it('takes empty posts, other scripts and halves of characters, and gives nothing of nothing', async () => {
    const posts = ['', '  ', '我 🎉', '\ud800'].map((text, i) => ({ id: `${i}`, text }))
    const found = await retrieve('far', {}, 10, posts)
    assert.equal(found.length, 4)
    for (const [, score] of found) assert.ok(Number.isFinite(score))
    assert.deepEqual(await retrieve('far', {}, 10, []), [])
  })

  it('gives side by side what it gives one by one, with a cache smaller than a profile too', async () => {
    const questions = ['far', 'north', 'east south', 'far']
    const expected = []
    for (const question of questions) expected.push(await retrieve(question))
    for (const cacheBytes of [0, 700, 1 << 20]) {
      await using closing = await open({ cacheBytes })
      const all = await Promise.all(
        questions.map(question => closing.retriever.retrieve({ question, narrative: '' }, profile, 4)),
      )
      assert.deepEqual(
        all.map(passages => passages.map(({ id, score }) => [id, score])),
        expected,
      )
    }
  })

  it('says that it is closed, after what was asked before has been answered', async () => {
    const { retriever } = await open()
    const asked = retriever.retrieve({ question: 'far', narrative: '' }, profile, 1)
    const closed = retriever.close()
    assert.equal((await asked)[0]!.id, 'n')
    await closed
    await retriever.close()
    await assert.rejects(retriever.retrieve({ question: 'far', narrative: '' }, profile, 1), {
      code: 'RETRIEVER_FAILED',
      message: /closed/,
    })
  })
})

describe('the hash of a dense retriever', () => {
  it('changes with the model and with every setting that its vectors depend on, not with their cache', async t => {
    const other = await toyEmbeddingModel({ scale: 2 })
    t.after(() => rm(other, { recursive: true }))
    const hash = async (options: Partial<DenseOptions>) => {
      await using closing = await open(options)
      return closing.retriever.hash
    }
    const variants: Partial<DenseOptions>[] = [
      {},
      { path: other },
      { pooling: 'cls' },
      { normalise: true },
      { maxTokens: 5 },
      { batch: 2 },
      { queryPrefix: 'query ' },
      { passagePrefix: 'query ' },
    ]
    const hashes = []
    for (const options of variants) hashes.push(await hash(options))
    assert.equal(new Set(hashes).size, variants.length)
    const copy = `${path}-copy`
    await cp(path, copy, { recursive: true })
    t.after(() => rm(copy, { recursive: true }))
    assert.equal(await hash({ path: copy, cacheBytes: 1, threads: 1 }), hashes[0])
  })
})

describe('a model that cannot be used', () => {
  const failed = (message: RegExp) => ({ code: 'RETRIEVER_FAILED', message })
  for (const file of ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'onnx/model.onnx']) {
    it(`for want of ${file}`, async t => {
      const broken = await toyEmbeddingModel()
      t.after(() => rm(broken, { recursive: true }))
      await rm(join(broken, file))
      await assert.rejects(open({ path: broken }), failed(new RegExp(`cannot read ${file} .*ENOENT`)))
    })
  }

  it('for want of the dtype, of a usable output, of the folder', async t => {
    await assert.rejects(
      open({ dtype: 'q8' }),
      failed(/cannot read onnx\/model_quantized.onnx \(dtype q8 needs it/),
    )
    await assert.rejects(
      open({ path: '/no/such/model' }),
      failed(/\/no\/such\/model: cannot read config.json/),
    )
    const other = await toyEmbeddingModel({ output: 'pooled' })
    t.after(() => rm(other, { recursive: true }))
    await assert.rejects(retrieve('far', { path: other }), failed(/no last_hidden_state .* only pooled/))
  })

  it('and batch sizes that are none', async () => {
    await assert.rejects(open({ batch: 0 }), failed(/batch must be a whole number from 1, got 0/))
  })
})

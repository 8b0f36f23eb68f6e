/** The committed backbone: its tokenizer is what the script makes, and it is the model that the lab needs. */
import assert from 'node:assert/strict'
import { readdir, readFile, stat } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { ChatTokenizer } from '../../../engine/tokens/chat-tokenizer.ts'
import { loadModelDirectory } from '../../../engine/weights/model-directory.ts'
import { openCorpus } from '../../../examples/lab/corpus.ts'
import { BACKBONE, makeTokenizer, PROMPT } from '../../../examples/lab/make-tokenizer.ts'

const model = await loadModelDirectory(BACKBONE)
const tokenizer = ChatTokenizer.load(model, model.rawConfig, model.config.vocabularySize)

test('takes at most 8 MB of the repository', async () => {
  const names = await readdir(BACKBONE)
  const sizes = await Promise.all(names.map(async name => (await stat(`${BACKBONE}/${name}`)).size))
  assert.ok(sizes.reduce((a, b) => a + b) < 8e6)
})

describe('the tokenizer', () => {
  test('is what the script makes', async () => {
    for (const [name, text] of Object.entries(await makeTokenizer())) {
      assert.ok((await readFile(`${BACKBONE}/${name}`, 'utf8')) === text, `${name} differs`)
    }
  })

  test('takes any text and gives it back', () => {
    for (const text of [
      'Plain words.',
      '  two  spaces\n',
      'naïve café',
      '日本語 и русский',
      '👩‍👩‍👧 \u0000',
    ]) {
      const ids = tokenizer.encodeChat([{ role: 'user', content: text }])
      assert.equal(tokenizer.decode(ids), text)
    }
  })

  test('frames turns by control tokens and ends answers with the stop token', () => {
    const ids = [...tokenizer.encodeChat([{ role: 'user', content: '<|end|>' }])]
    assert.deepEqual(tokenizer.stopTokens, [0])
    assert.deepEqual([ids[0], ids.at(-2), ids.at(-1)], [2, 0, 3])
    assert.equal(ids.filter(id => id === 0).length, 1, 'a post cannot forge a control token')
  })

  test('makes nearly every word of the lab one token', async () => {
    const corpus = await openCorpus(11, PROMPT)
    let words = 0
    let tokens = 0
    for (let i = 0; i < 50; i++) {
      const { messages } = await corpus.example(i)
      words += messages
        .map(({ content }) => content.match(/\p{L}+|[^\p{L}\s]|\n/gu)!.length)
        .reduce((a, b) => a + b)
      tokens += tokenizer.encodeChat(messages).length
    }
    assert.ok(tokens < 1.15 * words, `${tokens} tokens for ${words} words`)
  })
})

test('shares key/value heads and ties its output head, so that both are exercised', () => {
  const { heads, keyValueHeads, tiedHead, vocabularySize } = model.config
  assert.ok(keyValueHeads < heads && tiedHead)
  assert.equal(vocabularySize, 1536)
})

/**
 * Tokenizers of published models (see test/fixtures/fetch-language-models.ts), as tokenizer.json and as GGUF
 * metadata, against the Rust tokenizers library and transformers (test/golden/published-tokenizers.py).
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { ChatTokenizer } from '../../../engine/tokens/chat-tokenizer.ts'
import { readCompanions } from '../../../engine/weights/companions.ts'
import { publishedTokenizer, TOKENIZERS, type TokenizerName } from '../../fixtures/fetch-language-models.ts'
import { ggufCompanions } from '../../helpers/gguf-companions.ts'
import { type TokenizerOptions, tokenizerMetadata } from '../../helpers/gguf-tokenizer.ts'
import { companionJson, textIds, withPlainText } from '../../helpers/plain-text.ts'
import { bool, type Typed } from '../../helpers/write-gguf.ts'

const golden = JSON.parse(
  await readFile(new URL('../../golden/published-tokenizers.json', import.meta.url), 'utf8'),
)

interface Family {
  readonly gguf: TokenizerOptions
  readonly more?: Readonly<Record<string, Typed>>
  /** The id that begins a sequence, where the model has one. */
  readonly bos?: number
  /** eos of tokenizer_config.json, and what ends a turn. */
  readonly stop: readonly number[]
}

const FAMILIES: Readonly<Record<TokenizerName, Family>> = {
  qwen2_5: { gguf: { pre: 'qwen2', size: 151_936, ids: { bos: 151_643, eos: 151_645 } }, stop: [151_645] },
  qwen3: { gguf: { pre: 'qwen2', size: 151_936, ids: { bos: 151_643, eos: 151_645 } }, stop: [151_645] },
  gemma2: {
    gguf: { size: 256_000, ids: { bos: 2, eos: 1, unknown: 3, padding: 0 } },
    more: { 'tokenizer.ggml.add_space_prefix': bool(false) },
    bos: 2,
    stop: [1, 107],
  },
  llama3: {
    gguf: { pre: 'llama-bpe', size: 128_256, ids: { bos: 128_000, eos: 128_001 } },
    bos: 128_000,
    stop: [128_001, 128_009],
  },
  llama2: { gguf: { size: 32_000, ids: { bos: 1, eos: 2, unknown: 0 } }, bos: 1, stop: [2] },
}

for (const name of TOKENIZERS) {
  describe(`the tokenizer of ${name}`, async () => {
    const fetched = await publishedTokenizer(name)
    const skip = fetched.missing ?? false
    const path = fetched.path ?? ''
    const family = FAMILIES[name]
    const { ids, chats, template } = golden.families[name]

    for (const form of ['tokenizer.json', 'GGUF']) {
      it(`as ${form} gives the ids of the Rust library`, { skip }, async () => {
        let companions = await readCompanions(path)
        // Two of the packages have none.
        const source = template ?? companionJson(companions, 'tokenizer_config.json').chat_template
        if (form === 'GGUF') {
          const json = companionJson(companions, 'tokenizer.json')
          const metadata = {
            ...tokenizerMetadata(json, { ...family.gguf, template: source }),
            ...family.more,
          }
          companions = await ggufCompanions(metadata)
        }
        const tokenizer = ChatTokenizer.load(
          { path, companions: withPlainText(companions, source) },
          {},
          family.gguf.size,
        )
        for (const [i, text] of golden.texts.entries()) {
          assert.deepEqual(textIds(tokenizer, text), ids[i], JSON.stringify(text))
        }
        for (const [key, messages] of Object.entries(golden.chats)) {
          const found = [...tokenizer.encodeChat(messages as [])]
          assert.deepEqual(found, chats[key], key)
          // Written by the template, and not once more by the tokenizer.
          if (family.bos !== undefined && key !== 'turns') {
            assert.deepEqual([found[0], found.lastIndexOf(family.bos)], [family.bos, 0])
          }
        }
        assert.deepEqual(tokenizer.stopTokens, family.stop)

        // 2 MB without a word break, of a tokenizer that cuts words and one that does not: not minutes, but seconds.
        if (form === 'GGUF' && ['qwen2_5', 'gemma2'].includes(name)) {
          const post = 'abcdefghij'.repeat(200_000)
          assert.equal(tokenizer.decode(Int32Array.from(textIds(tokenizer, post))), post)
        }
      })
    }
  })
}

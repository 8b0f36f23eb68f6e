/**
 * A real GGUF file (see test/fixtures/fetch-language-models.ts) against what transformers and llama.cpp make of it
 * (test/golden/smollm2.py).
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ChatTokenizer } from '../../../../engine/tokens/chat-tokenizer.ts'
import { loadModelDirectory } from '../../../../engine/weights/model-directory.ts'
import { readModelFiles } from '../../../../engine/weights/model-files.ts'
import { smollm2Gguf } from '../../../fixtures/fetch-language-models.ts'
import { ggufCompanions } from '../../../helpers/gguf-companions.ts'
import { tokenizerMetadata } from '../../../helpers/gguf-tokenizer.ts'
import { companionJson, textIds, withPlainText } from '../../../helpers/plain-text.ts'

const golden = JSON.parse(await readFile(new URL('../../../golden/smollm2.json', import.meta.url), 'utf8'))

describe('SmolLM2-135M-Instruct as a GGUF file', async () => {
  const file = await smollm2Gguf()
  const skip = file.missing ?? false
  const path = file.path ?? ''

  it('has the parameters of transformers, bit for bit', { skip }, async () => {
    const { weights } = await loadModelDirectory(path)
    assert.deepEqual([...weights.keys()].sort(), Object.keys(golden.tensors).sort())
    for (const [name, tensor] of weights) {
      const data = tensor.data as Float32Array
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
      assert.equal(createHash('sha256').update(bytes).digest('hex'), golden.tensors[name], name)
    }
  })

  it('takes little more memory than its weights in f32 do', { skip }, async () => {
    const child = fileURLToPath(new URL('../loading-child.ts', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', child, path])
    const { bytes, peak } = JSON.parse(stdout)
    const { size } = await stat(path)
    assert.equal(bytes, 538_060_032)
    assert.ok(peak - bytes < size, `${peak - bytes} bytes beside the weights, the file has ${size}`)
  })

  it('has its configuration', { skip }, async () => {
    const { config } = await readModelFiles(path)
    assert.deepEqual(config, {
      architecture: 'llama',
      hiddenSize: 576,
      intermediateSize: 1536,
      layers: 30,
      heads: 9,
      keyValueHeads: 3,
      headDim: 64,
      vocabularySize: 49_152,
      contextLength: 8192,
      normEpsilon: 1e-5,
      tiedHead: true,
      ropeTheta: 100_000,
    })
  })

  it("cuts texts into llama.cpp's tokens, and renders chats as transformers does", { skip }, async () => {
    const model = await readModelFiles(path)
    const { rawConfig, config } = model
    const tokenizer = ChatTokenizer.load(model, rawConfig, config.vocabularySize)
    for (const { messages, ids } of golden.chats) assert.deepEqual([...tokenizer.encodeChat(messages)], ids)
    assert.deepEqual(tokenizer.stopTokens, [2])

    const template = companionJson(model.companions, 'tokenizer_config.json').chat_template
    const companions = withPlainText(model.companions, template)
    const plain = ChatTokenizer.load({ path, companions }, rawConfig, config.vocabularySize)
    for (const [text, ids] of golden.texts) assert.deepEqual(textIds(plain, text), ids, JSON.stringify(text))
  })

  for (const pre of ['default', 'gpt-2']) {
    it(`cuts words as llama.cpp does by the pre-tokenizer ${pre}`, { skip }, async () => {
      const { companions } = await readModelFiles(path)
      const json = companionJson(companions, 'tokenizer.json')
      const files = await ggufCompanions(
        tokenizerMetadata(json, { pre, size: 49_152, template: '', ids: { eos: 2 } }),
      )
      const template = "{{ messages[0]['content'] }}"
      const plain = ChatTokenizer.load({ path, companions: withPlainText(files, template) }, {}, 49_152)
      for (const [i, ids] of golden.pre[pre].entries()) {
        const [text] = golden.texts[i]
        assert.deepEqual(textIds(plain, text), ids, JSON.stringify(text))
      }
    })
  }
})

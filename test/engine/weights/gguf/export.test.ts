/** A run that starts from a GGUF file goes on from, and ends in, ordinary Hugging Face directories. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openLocalEngine } from '../../../../engine/local-engine.ts'
import type { Engine, EngineOptions } from '../../../../engine/port.ts'
import { ggufModel } from '../../../helpers/gguf-model.ts'
import { SMALL_MODELS } from '../../../helpers/small-models.ts'
import { writeGguf } from '../../../helpers/write-gguf.ts'

let folder: string
let gguf: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grasp-gguf-export-'))
  gguf = join(folder, 'model.gguf')
  await writeGguf(gguf, ggufModel(SMALL_MODELS['llama, llama3 scaling']!).content)
})
after(() => rm(folder, { recursive: true, force: true }))

const CHAT = [{ role: 'user', content: 'the man of the hen, 日本 <|im_end|>' }] as const

async function withEngine<T>(path: string, use: (engine: Engine) => Promise<T>): Promise<T> {
  const options: EngineOptions = {
    path,
    device: 'cpu',
    threads: 1,
    keepPolicies: 1,
    tokensPerPass: 256,
    sequencesPerPass: 4,
  }
  const engine = await openLocalEngine(options)
  try {
    return await use(engine)
  } finally {
    await engine.close()
  }
}

async function train(engine: Engine, count: number): Promise<string> {
  const prompt = await engine.encodeChat(CHAT)
  let weightsHash = ''
  for (let i = 0; i < count; i++) {
    await engine.accumulate([{ loss: 'cross-entropy', prompt, response: Int32Array.of(40, 41, 2) }])
    const updated = await engine.update({
      responses: 1,
      learningRate: 0.01,
      betas: [0.9, 0.99],
      epsilon: 1e-8,
      weightDecay: 0,
      clip: 1,
    })
    weightsHash = updated.weightsHash
  }
  return weightsHash
}

test('a checkpoint and an export are directories that the engine opens, with the same tokens', async () => {
  const [checkpoint, exported] = [join(folder, 'checkpoint'), join(folder, 'exported')]
  const twice = await withEngine(gguf, async engine => {
    await train(engine, 1)
    await engine.saveCheckpoint(checkpoint, { at: 1 })
    return train(engine, 1)
  })
  const { ids, info } = await withEngine(gguf, async engine => {
    assert.deepEqual(await engine.loadCheckpoint(checkpoint), { at: 1 })
    // The run that was broken off goes on with the same bits.
    assert.equal(await train(engine, 1), twice)
    await engine.exportPolicy(2, exported, 'f32')
    return { ids: await engine.encodeChat(CHAT), info: await engine.info() }
  })
  await withEngine(exported, async engine => {
    const found = await engine.info()
    assert.equal(await engine.weightsHash(0), twice)
    assert.deepEqual(await engine.encodeChat(CHAT), ids)
    assert.equal(found.tokenizerHash, info.tokenizerHash)
    assert.equal(found.templateHash, info.templateHash)
    assert.deepEqual(found.stopTokens, info.stopTokens)
  })
})

test('transformers loads the export with its tokenizer and template', async t => {
  const exported = join(folder, 'for-transformers')
  const ids = await withEngine(gguf, async engine => {
    await engine.exportPolicy(0, exported, 'f32')
    return engine.encodeChat([{ role: 'user', content: 'the man of the hen, 日本' }])
  })
  const script = fileURLToPath(new URL('../../../golden/chat.py', import.meta.url))
  const python = process.env.GRASP_TEST_PYTHON ?? 'python3'
  const messages = JSON.stringify([{ role: 'user', content: 'the man of the hen, 日本' }])
  try {
    const { stdout } = await promisify(execFile)(python, [script, exported, messages])
    const found = JSON.parse(stdout)
    assert.deepEqual(found.ids, [...ids])
    assert.deepEqual([found.missing, found.unexpected], [[], []])
    assert.equal(found.rope, 'llama3')
  } catch (error) {
    const { code, stderr } = error as { code: unknown; stderr?: string }
    if (code !== 'ENOENT' && code !== 3) throw error
    t.skip(`needs ${python} with torch and transformers (${code === 3 ? stderr!.trim() : 'it is not there'})`)
  }
})

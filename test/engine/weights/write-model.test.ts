import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { narrowBf16, widenBf16 } from '../../../engine/weights/half.ts'
import { loadModelDirectory, type ModelDirectory } from '../../../engine/weights/model-directory.ts'
import type { Weights } from '../../../engine/weights/weights.ts'
import { weightsHash } from '../../../engine/weights/weights-hash.ts'
import { writeModel } from '../../../engine/weights/write-model.ts'
import { makeTinyModel, type TinyModel } from '../../helpers/tiny-model.ts'

let tiny: TinyModel
let model: ModelDirectory
let folder: string
before(async () => {
  tiny = await makeTinyModel()
  model = await loadModelDirectory(tiny.path)
})
after(() => tiny.remove())
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grasp-write-model-'))
})
afterEach(() => rm(folder, { recursive: true }))

const readJson = async (name: string) => JSON.parse(await readFile(join(folder, name), 'utf8'))

test('one file within the limit: the same weights, the settings and the tokenizer beside them', async () => {
  const files = await writeModel(folder, model, model.weights, 'f32')
  assert.deepEqual(Object.keys(files).sort(), (await readdir(folder)).sort())
  assert.ok('model.safetensors' in files && 'tokenizer.json' in files && 'chat_template.jinja' in files)
  assert.equal(weightsHash((await loadModelDirectory(folder)).weights), weightsHash(model.weights))
  assert.equal((await readJson('config.json')).torch_dtype, 'float32')
})

test('beyond the limit: shards in the order of the names, and an index; the hashes are those of the files', async () => {
  // The embedding alone, 288 × 32 in f32, is larger than the limit: it has a shard of its own.
  const limit = 30_000
  const files = await writeModel(folder, model, model.weights, 'f32', { shardBytes: limit })
  for (const [name, hash] of Object.entries(files)) {
    const content = await readFile(join(folder, name))
    assert.equal(createHash('sha256').update(content).digest('hex'), hash, name)
    if (name.endsWith('.safetensors') && !name.includes('00001'))
      assert.ok(content.length < limit + 4096, name)
  }
  const { metadata, weight_map: map } = await readJson('model.safetensors.index.json')
  const bytes = [...model.weights.values()].reduce((sum, { size }) => sum + 4 * size, 0)
  assert.deepEqual(metadata, { total_size: bytes })
  assert.deepEqual(Object.keys(map).sort(), [...model.weights.keys()].sort())
  const shards = [...new Set(Object.values(map))]
  assert.ok(shards.length >= 3 && shards.length < model.weights.size / 2)
  assert.deepEqual(
    shards,
    shards.map((_, i) => `model-0000${i + 1}-of-0000${shards.length}.safetensors`),
  )
  assert.deepEqual(
    Object.entries(map)
      .filter(([, file]) => file === shards[0])
      .map(([name]) => name),
    ['model.embed_tokens.weight'],
  )
  assert.equal(weightsHash((await loadModelDirectory(folder)).weights), weightsHash(model.weights))
})

test('bf16 rounds every weight and says so in config.json', async () => {
  await writeModel(folder, model, model.weights, 'bf16', { shardBytes: 30_000 })
  const { weights } = await loadModelDirectory(folder)
  for (const [name, tensor] of model.weights) {
    const rounded = widenBf16(narrowBf16(tensor.data as Float32Array))
    assert.deepEqual(weights.get(name)!.data, rounded, name)
  }
  assert.equal((await readJson('config.json')).torch_dtype, 'bfloat16')
  const { torch_dtype: _, ...rest } = model.rawConfig
  await writeModel(folder, { ...model, rawConfig: { ...rest, dtype: 'float32' } }, model.weights, 'bf16')
  const newer = await readJson('config.json')
  assert.deepEqual([newer.dtype, newer.torch_dtype], ['bfloat16', undefined])
})

test('the order in which weights are given does not change the files', async () => {
  const write = async (weights: Weights) => {
    const to = await mkdtemp(join(folder, 'a-'))
    return writeModel(to, model, weights, 'f32', { shardBytes: 30_000 })
  }
  assert.deepEqual(await write(new Map([...model.weights].reverse())), await write(model.weights))
})

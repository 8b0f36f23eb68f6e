import assert from 'node:assert/strict'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import { loadModelDirectory } from '../../../engine/weights/model-directory.ts'
import { readSafetensors, writeSafetensors } from '../../../engine/weights/safetensors.ts'
import { weightsHash } from '../../../engine/weights/weights-hash.ts'
import { makeTinyModel, type TinyModelOptions } from '../../helpers/tiny-model.ts'

async function withModel(options: TinyModelOptions, use: (path: string) => Promise<void>): Promise<void> {
  const model = await makeTinyModel(options)
  try {
    await use(model.path)
  } finally {
    await model.remove()
  }
}

/** Changes the tensors of a model on the disk. */
async function edit(path: string, change: (weights: Map<string, Tensor>) => void): Promise<void> {
  const file = join(path, 'model.safetensors')
  const weights = await readSafetensors(file)
  change(weights)
  await writeSafetensors(file, weights, { dtype: 'f32' })
}

const NORM = 'model.norm.weight'
const ones = (size: number) => new Tensor('float32', new Float32Array(size).fill(1), [size])

test('shards give the same weights as one file', async () => {
  await withModel({}, async one => {
    await withModel({ shards: 3 }, async three => {
      const hash = weightsHash((await loadModelDirectory(one)).weights)
      assert.equal(weightsHash((await loadModelDirectory(three)).weights), hash)
    })
  })
})

test('the hash sees names, shapes and values', async () => {
  await withModel({}, async path => {
    const { weights } = await loadModelDirectory(path)
    const hash = weightsHash(weights)
    const changed = (change: (copy: Map<string, Tensor>) => void) => {
      const copy = new Map(weights)
      change(copy)
      return weightsHash(copy)
    }
    assert.equal(
      changed(copy => copy.set(NORM, copy.get(NORM)!)),
      hash,
    )
    const norm = Float32Array.from(weights.get(NORM)!.data as Float32Array)
    norm[3]! += 1e-6
    assert.notEqual(
      changed(copy => copy.set(NORM, new Tensor('float32', norm, [32]))),
      hash,
    )
    const same = weights.get(NORM)!.data as Float32Array
    assert.notEqual(
      changed(copy => copy.set(NORM, new Tensor('float32', same, [32, 1]))),
      hash,
    )
    assert.notEqual(
      changed(copy => {
        copy.set('other', copy.get(NORM)!)
        copy.delete(NORM)
      }),
      hash,
    )
  })
})

test('a tied head that is stored all the same is dropped, an untied one is needed', async () => {
  await withModel({}, async path => {
    await edit(path, weights => weights.set('lm_head.weight', weights.get('model.embed_tokens.weight')!))
    assert.equal((await loadModelDirectory(path)).weights.has('lm_head.weight'), false)
  })
  await withModel({ tiedHead: false }, async path => {
    assert.deepEqual((await loadModelDirectory(path)).weights.get('lm_head.weight')!.dims, [288, 32])
  })
  await withModel({ config: { tie_word_embeddings: false } }, async path => {
    await edit(path, weights => weights.delete('lm_head.weight'))
    await assert.rejects(loadModelDirectory(path), {
      code: 'MODEL_INVALID',
      message: /lacks the tensor lm_head.weight \[288, 32\]/,
    })
  })
})

test('missing, misshapen and left-over tensors are named', async () => {
  await withModel({}, async path => {
    await edit(path, weights => weights.set(NORM, ones(31)))
    await assert.rejects(loadModelDirectory(path), {
      code: 'MODEL_INVALID',
      message: /model.norm.weight has the shape \[31\]; its config.json calls for \[32\]/,
    })
    await edit(path, weights => weights.set(NORM, ones(32)).set('extra', ones(1)).set('more', ones(1)))
    await assert.rejects(loadModelDirectory(path), {
      code: 'MODEL_INVALID',
      message: /holds the tensor extra and 1 more/,
    })
    await edit(path, weights => weights.delete(NORM))
    await assert.rejects(loadModelDirectory(path), {
      code: 'MODEL_INVALID',
      message: /lacks the tensor model.norm/,
    })
  })
})

test('files that are missing or do not fit each other are named', async () => {
  await withModel({ shards: 2 }, async path => {
    const index = join(path, 'model.safetensors.index.json')
    const { weight_map: map } = JSON.parse(await readFile(index, 'utf8'))
    const write = (weight_map: unknown) => writeFile(index, JSON.stringify({ weight_map }))
    await write({ ...map, [NORM]: 'model-00003-of-00002.safetensors' })
    await assert.rejects(loadModelDirectory(path), { message: /model-0000\d-of-0000\d.safetensors/ })
    await write({ ...map, [NORM]: '../outside.safetensors' })
    await assert.rejects(loadModelDirectory(path), { message: /outside its folder/ })
    await writeFile(index, '{"weight_map": []}')
    await assert.rejects(loadModelDirectory(path), { code: 'MODEL_INVALID', message: /no index of shards/ })
  })
  await withModel({}, async path => {
    await rm(join(path, 'model.safetensors'))
    await assert.rejects(loadModelDirectory(path), {
      code: 'MODEL_INVALID',
      message: /has neither model.safetensors nor .*save_pretrained/,
    })
    await writeFile(join(path, 'config.json'), '{"model_type": "llama", ')
    await assert.rejects(loadModelDirectory(path), {
      code: 'MODEL_INVALID',
      message: /config.json cannot be read/,
    })
  })
  await assert.rejects(loadModelDirectory('no/such/folder'), {
    code: 'MODEL_INVALID',
    message: /no\/such\/folder/,
  })
})

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Tensor } from 'onnxruntime-node'
import { loadModelDirectory } from '../../../engine/weights/model-directory.ts'
import { readSafetensors, writeSafetensors } from '../../../engine/weights/safetensors.ts'
import { weightsHash } from '../../../engine/weights/weights-hash.ts'
import { makeTinyModel, type TinyModelOptions } from '../../helpers/tiny-model.ts'

const run = promisify(execFile)
const CHILD = fileURLToPath(new URL('./loading-child.ts', import.meta.url))
const noLinks = process.platform === 'win32' && 'links need a privilege on Windows'

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

/** A model in two shards: their names, and ways to change index and tensors. */
async function withShards(
  use: (model: {
    readonly path: string
    readonly map: Readonly<Record<string, string>>
    index(map: unknown): Promise<void>
    shard(name: string, change: (weights: Map<string, Tensor>) => void): Promise<void>
    refused(message: RegExp): Promise<void>
  }) => Promise<void>,
): Promise<void> {
  await withModel({ shards: 2 }, async path => {
    const file = join(path, 'model.safetensors.index.json')
    const { weight_map: map } = JSON.parse(await readFile(file, 'utf8'))
    await use({
      path,
      map,
      index: weight_map => writeFile(file, JSON.stringify({ weight_map })),
      async shard(name, change) {
        const weights = await readSafetensors(join(path, name))
        change(weights)
        await writeSafetensors(join(path, name), weights, { dtype: 'f32' })
      },
      refused: message => assert.rejects(loadModelDirectory(path), { code: 'MODEL_INVALID', message }),
    })
  })
}

const [FIRST, SECOND] = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors']

test('an index that does not fit its shards is refused, naming tensor and files', async () => {
  await withShards(async ({ path, map, index, shard, refused }) => {
    await index({ ...map, [NORM]: 'model-00003-of-00002.safetensors' })
    await refused(/index\.json names model-00003-of-00002\.safetensors, which is not there/)
    for (const outside of ['../outside.safetensors', '/outside.safetensors', 'a\\..\\..\\b', 'C:\\x', '']) {
      await index({ ...map, [NORM]: outside })
      await refused(/outside its folder/)
    }
    const other = map[NORM] === FIRST ? SECOND : FIRST
    await index({ ...map, [NORM]: other })
    await refused(new RegExp(`places ${NORM} in ${other}, but it is in .*${map[NORM]}`))
    await index({ ...map, more: other })
    await refused(new RegExp(`places more in ${other}, which does not have it`))
    const { [NORM]: _, ...fewer } = map
    await index(fewer)
    await refused(new RegExp(`${map[NORM]} holds ${NORM}, which model.safetensors.index.json does not list`))
    await index(map)
    await shard(other, weights => weights.set(NORM, ones(32)))
    await refused(new RegExp(`${FIRST} and .*${SECOND} both hold ${NORM}`))
    await index([])
    await refused(/no index of shards/)
    await writeFile(join(path, 'model.safetensors.index.json'), '{"weight_map": ')
    await refused(/no index of shards/)
  })
})

test('a damaged shard is named', async () => {
  await withShards(async ({ path, refused }) => {
    await truncate(join(path, SECOND), 5000)
    await refused(new RegExp(`${SECOND} is damaged: it is cut off`))
    await rm(join(path, SECOND))
    await refused(new RegExp(`names ${SECOND}, which is not there`))
  })
})

test('model.safetensors counts where there is an index too', async () => {
  await withShards(async ({ path }) => {
    const { weights } = await loadModelDirectory(path)
    const changed = new Map(weights).set(NORM, ones(32))
    await writeSafetensors(join(path, 'model.safetensors'), changed, { dtype: 'f32' })
    assert.equal(weightsHash((await loadModelDirectory(path)).weights), weightsHash(changed))
  })
})

test('a directory of links, as the cache of Hugging Face has it, is read', { skip: noLinks }, async () => {
  await withModel({ shards: 2 }, async path => {
    const hash = weightsHash((await loadModelDirectory(path)).weights)
    const links = await mkdtemp(join(tmpdir(), 'grasp-links-'))
    try {
      for (const name of await readdir(path)) await symlink(join(path, name), join(links, name))
      assert.equal(weightsHash((await loadModelDirectory(links)).weights), hash)
    } finally {
      await rm(links, { recursive: true })
    }
  })
})

test('a dtype that the engine lacks is refused before anything is read', async () => {
  await withModel({}, async path => {
    const file = join(path, 'model.safetensors')
    const bytes = await readFile(file)
    const length = Number(bytes.readBigUInt64LE(0))
    const header = JSON.parse(bytes.subarray(8, 8 + length).toString())
    header[NORM].dtype = 'I32'
    const json = Buffer.from(JSON.stringify(header).padEnd(length))
    await writeFile(file, Buffer.concat([bytes.subarray(0, 8), json, bytes.subarray(8 + length)]))
    await assert.rejects(loadModelDirectory(path), {
      code: 'MODEL_UNSUPPORTED',
      message: /model.safetensors: model.norm.weight has dtype I32/,
    })
  })
})

test('a directory without weights or configuration is refused with what to do', async () => {
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

test('loading takes the memory of the f32 weights and little more, from f32 and from bf16', async () => {
  await withModel({}, async path => {
    const config = JSON.parse(await readFile(join(path, 'config.json'), 'utf8'))
    const rows = 750_000
    await writeFile(join(path, 'config.json'), JSON.stringify({ ...config, vocab_size: rows }))
    // Zeros that nobody wrote take no memory here; the child's peak begins with what this process has.
    const table = new Tensor('float32', new Float32Array(rows * 32), [rows, 32])
    const file = join(path, 'model.safetensors')
    const weights = await readSafetensors(file)
    // The head is tied, and stored all the same: it is not read.
    weights.set('model.embed_tokens.weight', table).set('lm_head.weight', table)
    for (const dtype of ['f32', 'bf16'] as const) {
      await writeSafetensors(file, weights, { dtype })
      const { stdout } = await run(process.execPath, ['--import', 'tsx', CHILD, path])
      const { bytes, peak } = JSON.parse(stdout) as { bytes: number; peak: number }
      assert.ok(bytes > 96e6)
      assert.ok(peak < bytes + 32e6, `${dtype}: ${bytes} bytes of weights made memory grow by ${peak}`)
    }
  })
})

test('what stands in for a file is told apart from a damaged one', { skip: noLinks }, async () => {
  const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n'
  const cases: [string, (file: string) => Promise<unknown>, RegExp][] = [
    ['model.safetensors', file => writeFile(file, pointer), /is a pointer of Git LFS.*git lfs pull/],
    ['config.json', file => writeFile(file, pointer), /config\.json is a pointer of Git LFS/],
    [
      'model.safetensors',
      file => symlink('../blobs/gone', file),
      /is a link to \.\.\/blobs\/gone, which is not there/,
    ],
    ['model.safetensors', file => symlink('/dev/zero', file), /is not a file/],
    // Opening it would wait for a writer.
    ['model.safetensors', file => run('mkfifo', [file]), /is not a file/],
  ]
  for (const [name, make, message] of cases) {
    await withModel({}, async path => {
      const file = join(path, name)
      await rm(file)
      await make(file)
      await assert.rejects(loadModelDirectory(path), { code: 'MODEL_INVALID', message })
    })
  }
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, before, test } from 'node:test'
import { openLmdbLog } from '../../bus/lmdb/log.ts'
import { output } from '../../bus/port.ts'
import { openLocalEngine } from '../../engine/local-engine.ts'
import { loadModelDirectory } from '../../engine/weights/model-directory.ts'
import { weightsHash } from '../../engine/weights/weights-hash.ts'
import { fetchPolicy } from '../../pipelines/fetch-policy.ts'
import { RemotePolicies } from '../../pipelines/remote-policies.ts'
import { makeTinyModel, type TinyModel } from '../helpers/tiny-model.ts'

const OPTIONS = {
  device: 'cpu',
  threads: 1,
  keepPolicies: 0,
  tokensPerPass: 512,
  sequencesPerPass: 8,
} as const

let model: TinyModel
let sharded: TinyModel
let cache: string
let server: Server
let url: string
before(async () => {
  model = await makeTinyModel({ seed: 2 })
  sharded = await makeTinyModel({ seed: 2, shards: 3 })
  cache = await mkdtemp(join(tmpdir(), 'grasp-fetched-'))
  server = createServer(async (request, response) => {
    const served = request.url!.startsWith('/policy/')
      ? model
      : request.url!.startsWith('/shards/')
        ? sharded
        : null
    const content = served && (await readFile(join(served.path, basename(request.url!))).catch(() => null))
    if (content) response.end(content)
    else response.writeHead(404).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
after(async () => {
  server.close()
  await model.remove()
  await sharded.remove()
  await rm(cache, { recursive: true, force: true })
})

test('a path is taken as it is', async () => {
  assert.equal(await fetchPolicy('/somewhere/v000003', cache, 3), '/somewhere/v000003')
})

test('a URL is fetched, and the engine takes it only with the right hash', async () => {
  const folder = await fetchPolicy(`${url}/policy/`, cache, 3)
  const base = await makeTinyModel({ seed: 1 })
  const published = await openLocalEngine({ path: model.path, ...OPTIONS })
  const engine = await openLocalEngine({ path: base.path, ...OPTIONS })
  try {
    const hash = await published.weightsHash('teacher')
    await assert.rejects(engine.loadPolicy(3, folder, '0'.repeat(64)), {
      code: 'CHECKPOINT_INVALID',
      message: /weights hash/,
    })
    await engine.loadPolicy(3, folder, hash)
    assert.equal(await engine.weightsHash(3), hash)
    assert.equal(await engine.policyVersion(), 3)
    assert.notEqual(await engine.weightsHash('teacher'), hash, 'the teacher is not touched')
  } finally {
    await engine.close()
    await published.close()
    await base.remove()
  }
})

test('weights that are spread over several files come with their index', async () => {
  const folder = await fetchPolicy(`${url}/shards`, cache, 5)
  const hash = async (path: string) => weightsHash((await loadModelDirectory(path)).weights)
  assert.equal(await hash(folder), await hash(model.path))
  const index = join(sharded.path, 'model.safetensors.index.json')
  await writeFile(index, JSON.stringify({ weight_map: { w: '../outside.safetensors' } }))
  await assert.rejects(fetchPolicy(`${url}/shards`, cache, 6), {
    code: 'CHECKPOINT_INVALID',
    message: /policy 6 cannot be fetched/,
  })
})

test('a URL that does not serve the policy is an error that names it', async () => {
  await assert.rejects(fetchPolicy(`${url}/elsewhere`, cache, 4), {
    code: 'CHECKPOINT_INVALID',
    message: /policy 4 cannot be fetched from http.*404.*output\.url/,
  })
})

test('what is fetched can be broken off in the middle', async () => {
  const slow = createServer((_, response) => response.write('half of it'))
  slow.listen(0, '127.0.0.1')
  await once(slow, 'listening')
  try {
    const controller = new AbortController()
    const address = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`
    slow.once('request', () => setImmediate(() => controller.abort()))
    await assert.rejects(fetchPolicy(address, cache, 7, controller.signal), {
      code: 'CHECKPOINT_INVALID',
      message: /policy 7 cannot be fetched.*abort/,
    })
  } finally {
    slow.closeAllConnections()
    slow.close()
  }
})

test('what was fetched does not stay once the engine has it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'grasp-remote-'))
  const base = await makeTinyModel({ seed: 1 })
  const engine = await openLocalEngine({ path: base.path, ...OPTIONS })
  const log = await openLmdbLog({ path: join(folder, 'log'), run: 'remote' })
  try {
    const hash = weightsHash((await loadModelDirectory(model.path)).weights)
    const record = { path: `${url}/policy`, tokenizer: '', score: null, best: false }
    await log.append([
      output('policies', '1', { ...record, version: 1, weightsHash: hash }),
      output('policies', '2', { ...record, version: 2, weightsHash: '0'.repeat(64) }),
    ])
    const fetched = join(folder, 'fetched')
    const policies = new RemotePolicies({ log, engine, cache: fetched, stopped: () => false })
    await policies.reached(1)
    assert.equal(await engine.weightsHash(1), hash)
    assert.deepEqual(await readdir(fetched), [])
    await assert.rejects(policies.reached(2), { code: 'CHECKPOINT_INVALID', message: /policy 2, as it was/ })
    assert.deepEqual(await readdir(fetched), [])
    await policies.close()
  } finally {
    await engine.close()
    await log.close()
    await base.remove()
    await rm(folder, { recursive: true, force: true })
  }
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { openLmdbLog } from '../../bus/lmdb/log.ts'
import { output } from '../../bus/port.ts'
import { openLocalEngine } from '../../engine/local-engine.ts'
import { RemotePolicies } from '../../pipelines/remote-policies.ts'
import { makeTinyModel } from '../helpers/tiny-model.ts'

test('what was fetched does not stay once the engine has it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'grasp-remote-'))
  const [base, trained] = [await makeTinyModel({ seed: 1 }), await makeTinyModel({ seed: 2 })]
  const server = createServer(async (request, response) => {
    const content = await readFile(join(trained.path, basename(request.url!))).catch(() => null)
    if (content) response.end(content)
    else response.writeHead(404).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const options = {
    device: 'cpu',
    threads: 1,
    keepPolicies: 2,
    tokensPerPass: 512,
    sequencesPerPass: 8,
  } as const
  const engine = await openLocalEngine({ path: base.path, ...options })
  const log = await openLmdbLog({ path: join(folder, 'log'), run: 'remote' })
  try {
    const published = await openLocalEngine({ path: trained.path, ...options })
    const weightsHash = await published.weightsHash('teacher')
    await published.close()
    const record = { path: `${url}/v`, tokenizer: '', score: null, best: false }
    await log.append([
      output('policies', '1', { ...record, version: 1, weightsHash }),
      output('policies', '2', { ...record, version: 2, weightsHash: '0'.repeat(64) }),
    ])
    const cache = join(folder, 'fetched')
    const policies = new RemotePolicies({ log, engine, cache, stopped: () => false })
    await policies.reached(1)
    assert.equal(await engine.weightsHash(1), weightsHash)
    assert.deepEqual(await readdir(cache), [])
    await assert.rejects(policies.reached(2), { code: 'CHECKPOINT_INVALID', message: /policy 2, as it was/ })
    assert.deepEqual(await readdir(cache), [])
    await policies.close()
  } finally {
    await engine.close()
    await log.close()
    server.close()
    await base.remove()
    await trained.remove()
    await rm(folder, { recursive: true, force: true })
  }
})

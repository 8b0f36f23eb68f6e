import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { configHash, configIdentity, differences } from '../../../pipelines/config/identity.ts'
import { loadConfig } from '../../../pipelines/config/load.ts'

describe('configuration identity', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'grasp-identity-'))
    writeFileSync(
      join(folder, 'grasp.yaml'),
      'run: a\nmodel: { path: m }\ndata: { train: t.json }\nprompt: p.txt\njudge: { kind: lexical }\n',
    )
    for (const name of ['t.json', 'u.json']) writeFileSync(join(folder, name), '[]')
    writeFileSync(join(folder, 'v.json'), '[1]')
    writeFileSync(join(folder, 'p.txt'), 'prompt')
  })
  after(() => rmSync(folder, { recursive: true }))
  const load = (...set: string[]) => loadConfig({ cwd: folder, set })

  test('places, threads, credits and checkpoint intervals do not count', async () => {
    const same = load(
      'run=b',
      'log.path=l',
      'output.path=o',
      'model.threads=7',
      'model.sequencesPerPass=5',
      'credits.records=1',
      'training.checkpointEvery=3',
    )
    assert.equal(await configHash(same), await configHash(load()))
  })

  test('a seed, a threshold and the content of a file count, its place does not', async () => {
    const hash = await configHash(load())
    assert.notEqual(await configHash(load('training.seed=2')), hash)
    assert.notEqual(await configHash(load('validation.tau=0.5')), hash)
    assert.notEqual(await configHash(load('data.train=v.json')), hash)
    assert.equal(await configHash(load('data.train=u.json')), hash)
  })

  test('differences are named', async () => {
    const before = await configIdentity(load())
    const after = await configIdentity(load('training.seed=2', 'data.train=v.json', 'data.limit.train=4'))
    assert.deepEqual(differences(before, after), [
      'data.limit.train was not set and is 4',
      'data.train has another content',
      'training.seed was 1 and is 2',
    ])
    assert.deepEqual(differences(before, before), [])
  })

  test('a key that only a newer version knows does not differ while it has its default', async () => {
    const { 'validation.topP': _topP, ...older } = await configIdentity(load())
    assert.deepEqual(differences(older, await configIdentity(load())), [])
    assert.deepEqual(differences(older, await configIdentity(load('validation.topP=0.5'))), [
      'validation.topP was not set and is 0.5',
    ])
  })

  test('a key that an older version counted does not differ', async () => {
    const now = await configIdentity(load())
    assert.deepEqual(differences({ ...now, 'model.sequencesPerPass': 7 }, now), [])
  })

  test('a file that is not there is named with its key', async () => {
    await assert.rejects(
      configHash(load('data.train=gone.json')),
      /data\.train: .*gone\.json: there is no such file/,
    )
  })
})

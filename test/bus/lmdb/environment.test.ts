import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { open } from 'lmdb'
import { openLmdbLog } from '../../../bus/lmdb/log.ts'
import type { Log } from '../../../bus/port.ts'
import { gather, questionOutput, questions } from '../samples.ts'
import { RUN, temporaryFolder } from './harness.ts'

const openChild = fileURLToPath(new URL('./open-child.ts', import.meta.url))

describe('opening the log', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let opened: Log[]
  beforeEach(async () => {
    folder = await temporaryFolder()
    opened = []
  })
  afterEach(async () => {
    for (const log of opened) await log.close()
    await folder.remove()
  })
  const openLog = async (options: Partial<Parameters<typeof openLmdbLog>[0]> = {}): Promise<Log> => {
    const log = await openLmdbLog({ path: folder.path, run: RUN, ...options })
    opened.push(log)
    return log
  }
  const partitionsOf = async (log: Log) =>
    (await log.topics()).find(info => info.topic === 'questions')!.partitions

  it('creates missing folders, and one folder a run', async () => {
    const path = join(folder.path, 'a', 'b')
    await openLog({ path, run: 'first' })
    const second = await openLog({ path, run: 'second.2' })
    await second.append(questions(1))
    assert.deepEqual(readdirSync(path).sort(), ['first', 'second.2'])
    assert.ok(existsSync(join(path, 'second.2', 'data.mdb')))
  })

  for (const run of ['', '.', '..', 'a/b', 'a\\b', '-x', 'x'.repeat(101), 'a b']) {
    it(`refuses the run name ${JSON.stringify(run.slice(0, 10))}`, async () => {
      await assert.rejects(openLog({ run }), { code: 'CONFIG_INVALID', message: /run: expected a name/ })
      assert.deepEqual(readdirSync(folder.path), [])
    })
  }

  it('takes a run name in any script', async () => {
    await openLog({ run: 'lauf-é_1.日本' })
  })

  it('keeps the partitions that a topic has', async () => {
    const log = await openLog({ partitions: { questions: 3 } })
    await log.close()
    assert.equal(await partitionsOf(await openLog()), 3)
    await assert.rejects(openLog({ partitions: { questions: 2 } }), {
      code: 'LOG_MISMATCH',
      message: /has 3 partition\(s\) of questions, the configuration asks for 2/,
    })
  })

  for (const count of [0, 1.5, -1, 65, Number.NaN]) {
    it(`refuses ${count} partitions`, async () => {
      const expected = { code: 'CONFIG_INVALID', message: /topic questions: partitions must be/ }
      await assert.rejects(openLog({ partitions: { questions: count } }), expected)
    })
  }

  it('refuses a file where the folder should be', async () => {
    writeFileSync(join(folder.path, RUN), 'text')
    await assert.rejects(openLog(), {
      code: 'LOG_UNAVAILABLE',
      message: /is a file; set log\.path to a folder/,
    })
    await assert.rejects(openLog({ path: join(folder.path, RUN) }), {
      code: 'LOG_UNAVAILABLE',
      message: /a part of this path is a file/,
    })
  })

  it('refuses a damaged data.mdb', async () => {
    mkdirSync(join(folder.path, RUN))
    writeFileSync(join(folder.path, RUN, 'data.mdb'), 'no database '.repeat(2000))
    await assert.rejects(openLog(), {
      code: 'LOG_UNAVAILABLE',
      message: /data\.mdb is damaged or was not written/,
    })
  })

  it('refuses an LMDB database of another program', async () => {
    const other = open({ path: join(folder.path, RUN), noSubdir: false, overlappingSync: false })
    await other.openDB({ name: 'users' }).put('a', 1)
    await other.close()
    const expected = { code: 'LOG_MISMATCH', message: /not a log of this program/ }
    await assert.rejects(openLog(), expected)
    await assert.rejects(openLog({ readOnly: true }), expected)
  })

  it('refuses another format version, naming both', async () => {
    await (await openLog()).close()
    const raw = open({ path: join(folder.path, RUN), noSubdir: false, overlappingSync: false })
    await raw.openDB({ name: 'meta', encoding: 'json' }).put(['format'], 999)
    await raw.close()
    const expected = {
      code: 'LOG_MISMATCH',
      message: /format version 999, this program reads and writes version 1/,
    }
    await assert.rejects(openLog(), expected)
    await assert.rejects(openLog({ readOnly: true }), expected)
  })

  it('can be tried again after it failed', async () => {
    await (await openLog({ partitions: { questions: 2 } })).append(questions(5))
    await assert.rejects(openLog({ partitions: { questions: 3 } }), { code: 'LOG_MISMATCH' })
    const log = await openLog()
    assert.equal((await gather(log.scan('questions'))).length, 5)
  })

  describe('for reading only', () => {
    it('creates nothing', async () => {
      const expected = { code: 'LOG_UNAVAILABLE', message: /there is no log in .*; check log\.path/ }
      await assert.rejects(openLog({ readOnly: true }), expected)
      assert.deepEqual(readdirSync(folder.path), [])
    })

    it('reads, and sees what a writer adds', async () => {
      const writer = await openLog()
      await writer.append([questionOutput('a')])
      const reader = await openLog({ readOnly: true })
      assert.equal((await gather(reader.scan('questions'))).length, 1)
      await writer.append([questionOutput('b')])
      assert.equal((await gather(reader.scan('questions'))).length, 2)
    })

    it('refuses to write, whatever the method', async () => {
      await (await openLog()).close()
      const log = await openLog({ readOnly: true })
      const expected = { code: 'LOG_UNAVAILABLE', message: /opened for reading only/ }
      await assert.rejects(log.append(questions(1)), expected)
      await assert.rejects(log.commit({ group: 'g', outputs: [], positions: [] }), expected)
      await assert.rejects(log.seal(['questions']), expected)
      await assert.rejects(log.unseal(['questions']), expected)
      await assert.rejects(log.setNote('a', 'b'), expected)
      await assert.rejects(log.seek('questions', 'g', [0]), expected)
    })
  })

  describe('without permission', () => {
    // The superuser may write anywhere, so the child takes another identity where it can.
    const user = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}
    const openAs = (path: string, ...flags: string[]) => {
      const args = ['--import', 'tsx', openChild, path, RUN, ...flags]
      const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', ...user })
      return stdout
    }
    afterEach(() => chmodSync(folder.path, 0o755))
    // Where the sources lie in a folder of the superuser alone, the other identity cannot run them.
    const probe = spawnSync(process.execPath, ['--import', 'tsx', openChild], { encoding: 'utf8', ...user })
    const skip = probe.stdout === '' && 'another identity cannot run the sources from this folder'

    it('to the folder, says so and what to do', { skip }, () => {
      chmodSync(folder.path, 0o555)
      const output = openAs(folder.path)
      assert.match(
        output,
        /^LOG_UNAVAILABLE cannot open the log in .*: no permission to write there; make the folder/,
      )
      assert.ok(output.includes(folder.path))
    })

    it('to the files of a log, says so and what to do', { skip }, async () => {
      await (await openLog()).close()
      for (const file of ['data.mdb', 'lock.mdb']) chmodSync(join(folder.path, RUN, file), 0o444)
      chmodSync(join(folder.path, RUN), 0o555)
      chmodSync(folder.path, 0o755)
      for (const flags of [[], ['read']]) {
        assert.match(openAs(folder.path, ...flags), /^LOG_UNAVAILABLE cannot open the log .*no permission/)
      }
      chmodSync(join(folder.path, RUN), 0o755)
    })
  })
})

/** A disk that takes no more, made by the shell's limit on the size of files. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openLmdbLog } from '../../../bus/lmdb/log.ts'
import { gather } from '../samples.ts'
import { RUN, temporaryFolder } from './harness.ts'

const script = fileURLToPath(new URL('./write-child.ts', import.meta.url))

describe('a disk that is full', () => {
  it('fails the commit with what to do, and loses nothing', async () => {
    const folder = await temporaryFolder()
    try {
      const command = `ulimit -f 4096; exec "$0" --import tsx "$@"`
      const args = [script, folder.path, RUN, 'append', '30', '200000']
      const { stdout, status } = spawnSync('sh', ['-c', command, process.execPath, ...args], {
        encoding: 'utf8',
      })
      const lines = stdout.trim().split('\n')
      const errors = lines.filter(line => !/^\d+$/.test(line))
      assert.equal(status, 0, 'the process survives')
      assert.ok(errors.length > 0, 'the limit was reached')
      for (const error of errors) {
        assert.match(
          error,
          /^LOG_UNAVAILABLE cannot write to the log in .*: the (disk is full|file may not grow)/,
        )
        assert.match(error, /nothing that was committed is lost$/)
      }
      const offsets = lines.filter(line => !errors.includes(line)).map(Number)
      const log = await openLmdbLog({ path: folder.path, run: RUN })
      const records = await gather(log.scan('deadletters'))
      assert.deepEqual(
        records.map(record => record.offset),
        offsets,
      )
      assert.ok(records.every(record => record.value))
      await log.close()
    } finally {
      await folder.remove()
    }
  })
})

import { describe, it, mock } from 'node:test'
import { openLmdbLog } from '../../../bus/lmdb/log.ts'
import { describeLog } from '../conformance.ts'
import { questionOutput, settle, until } from '../samples.ts'
import { makeLmdbHarness, RUN, temporaryFolder } from './harness.ts'

describeLog('LMDB', makeLmdbHarness)

describe('LMDB: a reader that waits', () => {
  it('is woken by what its own process writes, without looking', async () => {
    // No timer ever fires, so that only the write itself can wake it.
    mock.timers.enable({ apis: ['setInterval'] })
    const folder = await temporaryFolder()
    const log = await openLmdbLog({ path: folder.path, run: RUN })
    try {
      const ids: string[] = []
      const credits = { records: 10, bytes: 1 << 20 }
      let complete = false
      log.read('questions', { group: 'g', credits, until: 'sealed' }).subscribe({
        next: record => ids.push(record.value!.id),
        complete: () => {
          complete = true
        },
      })
      await settle()
      await log.append([questionOutput('a')])
      await until(() => ids.length === 1)
      await settle()
      await log.seal(['questions'])
      await until(() => complete)
    } finally {
      mock.timers.reset()
      await log.close()
      await folder.remove()
    }
  })
})

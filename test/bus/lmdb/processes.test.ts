/** Several processes on one log. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openLmdbLog } from '../../../bus/lmdb/log.ts'
import type { Delivery, Log } from '../../../bus/port.ts'
import { all, gather, letterOutput, until } from '../samples.ts'
import { RUN, temporaryFolder } from './harness.ts'

const script = fileURLToPath(new URL('./write-child.ts', import.meta.url))
const credits = { records: 1000, bytes: 1 << 30 }

describe('several processes on one log', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let log: Log
  beforeEach(async () => {
    folder = await temporaryFolder()
    log = await openLmdbLog({ path: folder.path, run: RUN })
  })
  afterEach(async () => {
    await log.close()
    await folder.remove()
  })

  const child = async (...args: (string | number)[]): Promise<string[]> => {
    const process_ = spawn(
      process.execPath,
      ['--import', 'tsx', script, folder.path, RUN, ...args.map(String)],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    let text = ''
    process_.stdout.setEncoding('utf8').on('data', chunk => {
      text += chunk
    })
    const [code] = await once(process_, 'close')
    assert.equal(code, 0)
    return text.trim().split('\n')
  }

  it('a reader that waits gets what another process writes, and its seal', async () => {
    const reading = all(log.read('deadletters', { group: 'g', credits, until: 'sealed' }))
    await child('seal', 5, 100)
    assert.equal((await reading).length, 5)
  })

  it('processes that write at once get offsets without gaps', async () => {
    const mine = async () => {
      const offsets: number[] = []
      for (let i = 0; i < 40; i++) offsets.push((await log.append([letterOutput('mine', 1000)]))[0]!.offset)
      return offsets
    }
    const [one, two, three] = await Promise.all([
      child('append', 40, 1000),
      child('append', 40, 1000),
      mine(),
    ])
    const offsets = [...one.map(Number), ...two.map(Number), ...three].sort((a, b) => a - b)
    assert.deepEqual(offsets, [...Array(122).keys()])
    const records = await gather(log.scan('deadletters'))
    assert.deepEqual(
      records.map(record => record.offset),
      offsets,
    )
    const times = records.map(record => record.timestamp)
    assert.deepEqual(
      times,
      [...times].sort((a, b) => a - b),
    )
  })

  it('a reader sees a log that outgrew the map it opened', async () => {
    await log.append([letterOutput('a', 10)])
    await child('append', 8, 4 << 20)
    const records = await gather(log.scan('deadletters'))
    assert.equal(records.length, 10)
    assert.equal(records[8]!.value!.payload.length, 4 << 20)
  })

  it('a group has one process: the other is told, and commits nothing', async () => {
    await log.append(Array.from({ length: 4 }, (_, i) => letterOutput(`${i}`, 10)))
    const seen: Delivery[] = []
    const subscription = log
      .read('deadletters', { group: 'g', credits, until: 'never' })
      .subscribe(record => seen.push(record))
    await until(() => seen.length === 4)
    const commit = (offset: number) =>
      log.commit({
        group: 'g',
        outputs: [letterOutput('out', 10)],
        positions: [{ topic: 'deadletters', partition: 0, offset }],
      })
    await commit(1)
    await child('commit', 3)
    await assert.rejects(commit(2), {
      code: 'LOG_UNAVAILABLE',
      message: /another process works on deadletters\/0 as group g: its position was 1 and is now 3/,
    })
    assert.deepEqual(await log.committed('deadletters', 'g'), [3])
    assert.equal((await gather(log.scan('deadletters'))).length, 5)
    subscription.unsubscribe()
  })
})

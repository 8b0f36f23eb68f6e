/** What is in flight is bounded by the credits, however much the log holds. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { mergeMap } from 'rxjs'
import { openFlow } from '../../../bus/flow.ts'
import { openLmdbLog } from '../../../bus/lmdb/log.ts'
import type { Log, LogRecord } from '../../../bus/port.ts'
import { gather, letterOutput } from '../samples.ts'
import { RUN, temporaryFolder } from './harness.ts'

const RECORDS = 2000
const BYTES = 256 << 10

describe('memory', () => {
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

  it('2,000 records of 256 KiB never take more than the credits', async () => {
    const record = letterOutput('k', BYTES)
    for (let i = 0; i < RECORDS; i += 50) await log.append(Array(50).fill(record))
    const credits = { records: 100, bytes: 10 * BYTES }
    const flow = openFlow(log, 'deadletters', { stage: 's', group: 'g', credits, until: 'end' })
    let bytes = 0
    let most = 0
    let count = 0
    const sizes: number[] = []
    const work = async (delivery: LogRecord<'deadletters'>) => {
      bytes += sizes[delivery.offset] = delivery.payload.length
      most = Math.max(most, bytes)
      for (let turns = delivery.offset % 4; turns > 0; turns--)
        await new Promise(resolve => setImmediate(resolve))
      return { consumed: [delivery], outputs: [] }
    }
    await flow.records$.pipe(mergeMap(work), flow.commit()).forEach(({ finished }) => {
      for (const { consumed } of finished) {
        bytes -= sizes[consumed[0]!.offset]!
        count++
      }
    })
    assert.equal(count, RECORDS)
    assert.equal(bytes, 0)
    assert.ok(most <= credits.bytes, `${most} bytes were in flight`)
    assert.ok(most > credits.bytes / 2, 'the credits are used')
  })

  it('a record of 40 MiB goes through whole', async () => {
    const sent = letterOutput('big', 40 << 20)
    await log.append([letterOutput('a', 10), sent, letterOutput('b', 10)])
    const [, record] = await gather(log.scan('deadletters'))
    const value = sent.value as { payload: Uint8Array }
    assert.ok(Buffer.from(record!.value!.payload).equals(value.payload))
    assert.ok(record!.payload.length > 40 << 20)
    const last = (await gather(log.scan('deadletters', { from: { offset: 2 } })))[0]!
    assert.equal(last.key, 'b')
    assert.equal(last.value!.payload.length, 10)
  })
})

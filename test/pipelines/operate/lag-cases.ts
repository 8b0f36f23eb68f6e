import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { Subscription } from 'rxjs'
import type { Log } from '../../../bus/port.ts'
import { type StageLag, stageLags } from '../../../pipelines/operate/lag.ts'
import { TOPOLOGY } from '../../../pipelines/topology.ts'
import type { LogHarness, MakeHarness } from '../../bus/conformance.ts'
import { gather, questionOutput, until } from '../../bus/samples.ts'

export function describeLag(name: string, make: MakeHarness): void {
  describe(`${name}: lag`, () => {
    let harness: LogHarness
    let log: Log
    let reading: Subscription | undefined
    beforeEach(async () => {
      harness = await make({ partitions: { questions: 2 } })
      log = await harness.open()
    })
    afterEach(async () => {
      reading?.unsubscribe()
      reading = undefined
      await log.close()
      await harness.remove()
    })

    const lagOf = async (stage: string, exact = false): Promise<StageLag> =>
      (await stageLags(log, { exact })).find(lag => lag.stage === stage)!

    it('has a row for every stage, also where there is nothing yet', async () => {
      const lags = await stageLags(log)
      assert.deepEqual(
        lags.map(({ stage }) => stage),
        TOPOLOGY.map(({ stage }) => stage),
      )
      for (const lag of lags) {
        if (lag.group === null) assert.ok(lag.why, lag.stage)
        else {
          assert.equal(lag.records, 0)
          assert.equal(lag.oldest, null)
          assert.deepEqual(lag.workers, [])
        }
      }
    })

    it('counts what is unread and tells the age of the oldest, partition by partition', async () => {
      const before = Date.now()
      for (let i = 0; i < 8; i++)
        await log.commit({ group: 'w', outputs: [questionOutput(`q${i}`)], positions: [] })
      const records = await gather(log.scan('questions'))
      assert.equal((await lagOf('retrieval', true)).records, 8)
      const [first] = records.filter(({ partition }) => partition === 1)
      await log.commit({
        group: 'retrieval',
        outputs: [],
        positions: [{ topic: 'questions', partition: 1, offset: first!.offset + 1 }],
      })
      const lag = await lagOf('retrieval', true)
      assert.equal(lag.records, 7)
      assert.equal(lag.atMost, 7)
      for (const { partition, records: unread, oldest, committed } of lag.partitions) {
        const left = records.filter(record => record.partition === partition && record.offset >= committed)
        assert.equal(unread, left.length)
        assert.equal(oldest, left[0]?.timestamp ?? null)
      }
      assert.ok(lag.oldest! >= before && lag.oldest! <= Date.now())
      assert.equal((await lagOf('validation')).records, 0)
      const rough = await lagOf('retrieval')
      assert.equal(rough.records, log.contiguous ? 7 : null)
      assert.ok(rough.atMost >= 7)
    })

    it('is 0 when all is read, whatever offsets follow the last record', async () => {
      await log.commit({ group: 'w', outputs: [questionOutput('a', 'k')], positions: [] })
      const [record] = await gather(log.scan('questions'))
      const { topic, partition, offset } = record!
      await log.commit({
        group: 'retrieval',
        outputs: [],
        positions: [{ topic, partition, offset: offset + 1 }],
      })
      const { records, atMost, oldest } = await lagOf('retrieval')
      assert.deepEqual({ records, atMost, oldest }, { records: 0, atMost: 0, oldest: null })
    })

    it('tells what is at work', async () => {
      let seen = 0
      await log.append([questionOutput('a')])
      const credits = { records: 10, bytes: 1 << 20 }
      reading = log.read('questions', { group: 'retrieval', credits, until: 'never' }).subscribe(() => seen++)
      await until(() => seen === 1)
      assert.equal((await lagOf('retrieval')).workers.length, 1)
      assert.equal((await lagOf('validation')).workers.length, 0)
    })
  })
}

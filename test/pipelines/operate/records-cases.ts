import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../../bus/port.ts'
import { countRecords, newestRecords, recordsFrom } from '../../../pipelines/operate/records.ts'
import { recordFilter } from '../../../pipelines/operate/where.ts'
import type { LogHarness, MakeHarness } from '../../bus/conformance.ts'
import { gather, questionOutput } from '../../bus/samples.ts'
import { validation } from './samples.ts'

export function describeRecords(name: string, make: MakeHarness): void {
  describe(`${name}: choosing records`, () => {
    let harness: LogHarness
    let log: Log
    beforeEach(async () => {
      harness = await make({ partitions: { questions: 3 } })
      log = await harness.open()
    })
    afterEach(async () => {
      await log.close()
      await harness.remove()
    })

    /** Transactions of one record each, so that a log that has gaps has them between all records. */
    const write = async (from: number, to: number) => {
      for (let i = from; i < to; i++)
        await log.commit({ group: 'w', outputs: [questionOutput(`q${i}`)], positions: [] })
    }

    it('the newest of all partitions, in the order in which they were written', async () => {
      for (let i = 0; i < 20; i++) {
        await write(i, i + 1)
        // Partitions are put in order by milliseconds.
        await sleep(2)
      }
      const newest = await newestRecords(log, { topic: 'questions' }, 4)
      assert.deepEqual(
        newest.map(({ value }) => (value as { id: string }).id),
        ['q16', 'q17', 'q18', 'q19'],
      )
      assert.deepEqual(await newestRecords(log, { topic: 'questions' }, 0), [])
      assert.equal((await newestRecords(log, { topic: 'questions' }, 100)).length, 20)
    })

    it('by key, by field, by partition, from a place', async () => {
      await write(0, 12)
      const filter = recordFilter('questions', ['id!=q3'])
      assert.deepEqual(await newestRecords(log, { topic: 'questions', key: 'q3', filter }, 5), [])
      const [only] = await newestRecords(log, { topic: 'questions', key: 'q3' }, 5)
      assert.equal(only!.key, 'q3')
      const { partition } = only!
      const there = await gather(recordsFrom(log, { topic: 'questions', partition }))
      assert.ok(there.length > 0 && there.every(record => record.partition === partition))
      const later = await gather(
        recordsFrom(log, { topic: 'questions', partition }, { offset: there[1]!.offset }),
      )
      assert.equal(later.length, there.length - 1)
    })

    it('counts records and not offsets', async () => {
      await write(0, 10)
      assert.equal(await countRecords(log, { topic: 'questions' }), 10)
      assert.equal(await countRecords(log, { topic: 'questions', key: 'q1' }), 1)
      const counts = await Promise.all(
        [0, 1, 2].map(partition => countRecords(log, { topic: 'questions', partition })),
      )
      assert.equal(counts[0]! + counts[1]! + counts[2]!, 10)
      assert.ok(counts.filter(count => count > 0).length > 1)
      await assert.rejects(countRecords(log, { topic: 'questions', partition: 3 }), {
        code: 'CONFIG_INVALID',
        message: /--partition 3: questions has 3, numbered from 0/,
      })
    })

    it('an undecodable record passes no condition, and is there without one', async () => {
      await harness.appendRaw(log, 'questions', 'k', new Uint8Array([1, 2, 3]))
      assert.equal(await countRecords(log, { topic: 'questions', key: 'k' }), 1)
      for (const condition of ['id=k', 'id!=k']) {
        const filter = recordFilter('questions', [condition])
        assert.equal(await countRecords(log, { topic: 'questions', filter }), 0)
      }
    })

    it('by fields of fields and elements of lists', async () => {
      await log.append([validation('a'), validation('b', { score: null, accepted: false })])
      const ids = async (...conditions: string[]) => {
        const filter = recordFilter('validations', conditions)
        const found = await gather(recordsFrom(log, { topic: 'validations', filter }))
        return found.map(({ key }) => key)
      }
      assert.deepEqual(await ids('context.id=a'), ['a'])
      assert.deepEqual(await ids('score=null'), ['b'])
      assert.deepEqual(await ids('score=0.750'), ['a'], 'numbers are compared as numbers')
      assert.deepEqual(await ids('accepted=true', 'verdicts.score=2'), ['a'])
      assert.deepEqual(await ids('verdicts.0.score=1'), [])
      assert.deepEqual(await ids('verdicts.1.score=1'), ['a', 'b'])
      assert.deepEqual(await ids('verdicts.score!=2'), [], 'no element may match')
      assert.deepEqual(await ids('context.aspects.evidence=my legs gave up'), ['a', 'b'])
      assert.deepEqual(await ids('response='), [])
    })
  })
}

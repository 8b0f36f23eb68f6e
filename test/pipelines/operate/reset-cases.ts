import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { Subscription } from 'rxjs'
import type { Delivery, Log } from '../../../bus/port.ts'
import { Checkpoints } from '../../../pipelines/checkpoints.ts'
import { applyReset, planReset, type ResetRequest } from '../../../pipelines/operate/reset.ts'
import type { Topic } from '../../../schemas/types.ts'
import type { LogHarness, MakeHarness } from '../../bus/conformance.ts'
import { all, gather, questionOutput, settle, until } from '../../bus/samples.ts'
import { batchOf, context, update, validation } from './samples.ts'

const CREDITS = { records: 1000, bytes: 1 << 30 }

export function describeReset(name: string, make: MakeHarness): void {
  describe(`${name}: reset`, () => {
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

    const plan = (request: ResetRequest) =>
      planReset(log, request, new Checkpoints(join(tmpdir(), 'grasp-no-such-folder')))
    const scanned = async <T extends 'questions' | 'instances'>(topic: T) => gather(log.scan(topic))
    const positionsPast = (records: readonly Delivery[]) => {
      const next = new Map<number, number>()
      for (const { partition, offset } of records) next.set(partition, offset + 1)
      return next
    }
    const settleAll = async (topic: Topic, group: string, records: readonly Delivery[]) => {
      const next = positionsPast(records)
      const positions = [...next].map(([partition, offset]) => ({ topic, partition, offset }))
      if (positions.length > 0) await log.commit({ group, outputs: [], positions })
    }
    /** Everything in the topic is done with, as a stage would have it. */
    const finish = async (topic: 'questions' | 'instances' | 'contexts', group: string) =>
      settleAll(topic, group, await gather(log.scan(topic)))
    /** What the stage gets to read; it is done with it, since a member stays until then. */
    const reads = async (topic: 'questions', group: string) => {
      const records = await all(log.read(topic, { group, credits: CREDITS, until: 'end' }))
      await settleAll(topic, group, records)
      while ((await log.workers(group)).length > 0) await settle()
      return records.map(({ value }) => value!.id)
    }
    const work = async (group: string) => {
      let seen = 0
      await log.append([context('at work')])
      reading = log.read('contexts', { group, credits: CREDITS, until: 'never' }).subscribe(() => seen++)
      await until(() => seen > 0)
    }

    it('says what would be read again and changes nothing', async () => {
      for (let i = 0; i < 6; i++)
        await log.commit({ group: 'w', outputs: [questionOutput(`q${i}`)], positions: [] })
      await finish('questions', 'retrieval')
      const before = await log.committed('questions', 'retrieval')
      const found = await plan({ stage: 'retrieval', to: 'beginning' })
      const records = await scanned('questions')
      assert.equal(found.again, 6)
      assert.equal(found.skipped, 0)
      assert.deepEqual(found.writes, ['contexts'])
      for (const { partition, again, from, to } of found.steps) {
        const times = records
          .filter(record => record.partition === partition)
          .map(({ timestamp }) => timestamp)
        assert.deepEqual([again, from, to], [times.length, times[0] ?? null, times.at(-1) ?? null])
      }
      assert.deepEqual(await log.committed('questions', 'retrieval'), before)
      assert.deepEqual(await reads('questions', 'retrieval'), [])
      await applyReset(log, found)
      assert.equal((await reads('questions', 'retrieval')).length, 6)
    })

    it('sets one partition and leaves the others', async () => {
      await log.append(Array.from({ length: 8 }, (_, i) => questionOutput(`q${i}`)))
      await finish('questions', 'retrieval')
      await applyReset(log, await plan({ stage: 'retrieval', to: 'beginning', partition: 1 }))
      const expected = (await scanned('questions')).filter(({ partition }) => partition === 1)
      assert.ok(expected.length > 0)
      assert.deepEqual(
        (await reads('questions', 'retrieval')).sort(),
        expected.map(({ value }) => value!.id).sort(),
      )
    })

    it('to the end: what was not read is skipped, and the plan counts it', async () => {
      await log.append([questionOutput('a'), questionOutput('b')])
      const found = await plan({ stage: 'retrieval', to: 'end' })
      assert.deepEqual([found.again, found.skipped], [0, 2])
      await applyReset(log, found)
      assert.deepEqual(await reads('questions', 'retrieval'), [])
    })

    it('to a time: the first record from then on, in each partition', async () => {
      await log.append([questionOutput('a', 'k'), questionOutput('b', 'k')])
      await new Promise(resolve => setTimeout(resolve, 20))
      const time = Date.now()
      await new Promise(resolve => setTimeout(resolve, 20))
      await log.append([questionOutput('c', 'k')])
      await finish('questions', 'retrieval')
      const found = await plan({ stage: 'retrieval', to: { time } })
      assert.equal(found.again, 1)
      await applyReset(log, found)
      const never = await plan({ stage: 'retrieval', to: { time: Date.now() + 3_600_000 } })
      assert.deepEqual([never.again, never.skipped], [0, 1])
      assert.deepEqual(await reads('questions', 'retrieval'), ['c'])
    })

    it('to an offset: of which partition must be said, and it must exist', async () => {
      await log.append([questionOutput('a', 'k'), questionOutput('b', 'k')])
      await finish('questions', 'retrieval')
      const [, second] = await scanned('questions')
      const { partition, offset } = second!
      await assert.rejects(plan({ stage: 'retrieval', to: { offset } }), {
        code: 'CONFIG_INVALID',
        message: /questions has 2 partitions; say which with --partition/,
      })
      await assert.rejects(
        plan({ stage: 'retrieval', to: { offset: 99 }, partition }),
        /questions\/\d ends at/,
      )
      await assert.rejects(
        plan({ stage: 'retrieval', to: 'end', partition: 2 }),
        /questions has 2, numbered from 0/,
      )
      await applyReset(log, await plan({ stage: 'retrieval', to: { offset }, partition }))
      assert.deepEqual(await reads('questions', 'retrieval'), ['b'])
    })

    it('is refused while the stage is at work, also when it began after the plan', async () => {
      await log.append([context('a')])
      await finish('contexts', 'validation')
      const found = await plan({ stage: 'validation', to: 'beginning' })
      await work('validation')
      const refused = { code: 'GROUP_ACTIVE', message: /validation is at work \(.+\); stop the run first/ }
      await assert.rejects(plan({ stage: 'validation', to: 'beginning' }), refused)
      await assert.rejects(applyReset(log, found), refused)
    })

    it('is refused when the stage has moved on since the plan', async () => {
      await log.append([context('a'), context('b')])
      const found = await plan({ stage: 'validation', to: 'end' })
      await finish('contexts', 'validation')
      await assert.rejects(applyReset(log, found), /validation has worked on contexts since/)
    })

    it('opens what is complete, so that the later stages wait for what comes', async () => {
      await log.append([questionOutput('a'), context('a'), validation('a')])
      await finish('questions', 'retrieval')
      await log.seal(['questions', 'contexts', 'validations', 'instances'])
      const sealed = async () => (await log.topics()).filter(info => info.sealed).map(({ topic }) => topic)
      const found = await plan({ stage: 'retrieval', to: 'beginning' })
      assert.deepEqual(found.reopens, ['contexts', 'validations', 'instances'])
      assert.equal((await sealed()).length, 4)
      await applyReset(log, found)
      assert.deepEqual(await sealed(), ['questions'])
    })

    it('is refused where a later stage at work waits for the end of what would be opened', async () => {
      await log.append([questionOutput('a')])
      await finish('questions', 'retrieval')
      await work('validation')
      assert.equal((await plan({ stage: 'retrieval', to: 'beginning' })).again, 1, 'nothing is sealed')
      await log.seal(['contexts'])
      await assert.rejects(plan({ stage: 'retrieval', to: 'beginning' }), {
        code: 'GROUP_ACTIVE',
        message: /opens contexts again, but validation is at work/,
      })
    })

    it('keeps batches whole, and leaves those that were trained on', async () => {
      await log.append(batchOf(0, 'a', 'b', 'c'))
      await log.append(batchOf(1, 'd', 'e', 'f'))
      await log.append(batchOf(2, 'g', 'h'))
      await log.append([update(0)])
      await finish('instances', 'rollout')
      const records = await scanned('instances')
      const offsets = records.map(({ offset }) => offset)
      const inside = await plan({ stage: 'rollout', to: { offset: offsets[4]! } })
      assert.equal(inside.steps[0]!.target, offsets[3])
      assert.equal(inside.again, 5)
      await assert.rejects(plan({ stage: 'rollout', to: 'beginning' }), (error: Error) => {
        assert.match(error.message, /^3 of the records of instances\/0 .* have been trained on/)
        assert.match(error.message, new RegExp(`Set rollout back to offset ${offsets[3]} or later`))
        return true
      })
      await log.append([update(1), update(2)])
      await assert.rejects(
        plan({ stage: 'rollout', to: 'beginning' }),
        /8 of the records .* No other batch is left to set rollout back to/,
      )
    })

    it('stages without a position in the log are refused, with what to do instead', async () => {
      const cases = [
        ['ingest', /ingest has no position to set: it reads files/],
        ['evaluation', /evaluation has no position to set: .*what evaluations does not hold/],
        ['training', /training's position is in its checkpoint.* There is no checkpoint yet$/],
      ] as const
      for (const [stage, message] of cases)
        await assert.rejects(plan({ stage, to: 'beginning' }), { code: 'CONFIG_INVALID', message })
    })
  })
}

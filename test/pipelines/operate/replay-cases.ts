import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { Subscription } from 'rxjs'
import { deadLetterOfItem, deadLetter as letterOf } from '../../../bus/dead-letter.ts'
import type { Envelope, Log, Output } from '../../../bus/port.ts'
import { output } from '../../../bus/port.ts'
import { GraspError } from '../../../errors/grasp-error.ts'
import {
  contentOf,
  deadLetter,
  deadLetters,
  type LetterFilter,
  parseLetterId,
} from '../../../pipelines/operate/dead-letters.ts'
import { applyReplay, planReplay, type Refused } from '../../../pipelines/operate/replay.ts'
import type { LogHarness, MakeHarness } from '../../bus/conformance.ts'
import { gather, question, questionOutput, until } from '../../bus/samples.ts'
import { sliceRecord } from '../../helpers/records.ts'
import { batchOf, context, validation } from './samples.ts'

const OPTIONS = { maxPostBytes: 1000 }
const CREDITS = { records: 1000, bytes: 1 << 30 }

const item = (id: string, change: object = {}) => ({
  ...{ id, question: 'Which walk?', narrative: '', category: 'Lifestyle' },
  profile: [{ id: 'p', text: 'I tire soon.' }],
  rubric_aspects: [{ aspect: 'short', reason: '', evidence: '' }],
  ...change,
})

export function describeReplay(name: string, make: MakeHarness): void {
  describe(`${name}: dead letters`, () => {
    let harness: LogHarness
    let log: Log
    let reading: Subscription | undefined
    beforeEach(async () => {
      harness = await make({ partitions: {} })
      log = await harness.open()
    })
    afterEach(async () => {
      reading?.unsubscribe()
      reading = undefined
      await log.close()
      await harness.remove()
    })

    /** Appends records and a dead letter for each. */
    const fail = async (stage: string, code: 'RECORD_INVALID' | 'PROMPT_TOO_LONG', ...outputs: Output[]) => {
      const places = await log.append(outputs)
      for (const { topic, partition, offset } of places) {
        for await (const record of log.scan(topic, { partition, from: { offset }, limit: 1 }))
          await log.append([
            letterOf(record as Envelope, { stage, error: new GraspError(code, `no ${record.key}`) }),
          ])
      }
    }
    const failItem = (key: string, value: unknown) =>
      log.append([
        deadLetterOfItem(key, value, {
          stage: 'ingest',
          error: new GraspError('RECORD_INVALID', 'wrong item'),
        }),
      ])
    const letters = (filter: LetterFilter = {}) => gather(deadLetters(log, filter))
    const replay = async (again = false) => {
      const plan = await planReplay(log, deadLetters(log), { ...OPTIONS, again })
      return { plan, ...(await applyReplay(log, plan)) }
    }
    const values = async (topic: 'questions' | 'contexts' | 'validations') =>
      (await gather(log.scan(topic))).map(({ value }) => value)

    it('are listed by stage, code, topic and time, and shown with their record', async () => {
      await fail('validation', 'PROMPT_TOO_LONG', context('a'), context('b'))
      await new Promise(resolve => setTimeout(resolve, 20))
      const since = Date.now()
      await fail('retrieval', 'RECORD_INVALID', questionOutput('c'))
      await failItem('train:4', item('d'))
      const keys = async (filter: LetterFilter) => (await letters(filter)).map(({ value }) => value.key)
      assert.deepEqual(await keys({}), ['a', 'b', 'c', 'train:4'])
      assert.deepEqual(await keys({ stage: 'validation' }), ['a', 'b'])
      assert.deepEqual(await keys({ code: 'RECORD_INVALID' }), ['c', 'train:4'])
      assert.deepEqual(await keys({ code: 'RECORD_INVALID', topic: '' }), ['train:4'])
      assert.deepEqual(await keys({ since }), ['c', 'train:4'])
      const [first, , third, fourth] = await letters()
      assert.deepEqual((await contentOf(log, first!)).value, context('a').value)
      assert.deepEqual((await contentOf(log, third!)).value, question('c'))
      assert.deepEqual((await contentOf(log, fourth!)).value, item('d'))
      const { partition, offset } = third!
      assert.equal((await deadLetter(log, { partition, offset })).value.key, 'c')
      await assert.rejects(deadLetter(log, { partition: 0, offset: 999 }), {
        code: 'CONFIG_INVALID',
        message: /there is no dead letter deadletters\/0\/999/,
      })
    })

    it('publish their record into its topic, once', async () => {
      await fail('validation', 'PROMPT_TOO_LONG', context('a'), context('b'))
      const { done } = await replay()
      assert.deepEqual(
        done.map(({ to }) => to.topic),
        ['contexts', 'contexts'],
      )
      assert.deepEqual(
        (await values('contexts')).map(value => (value as { id: string }).id),
        ['a', 'b', 'a', 'b'],
      )
      assert.deepEqual((await values('contexts'))[2], context('a').value)
      const second = await replay()
      assert.equal(second.done.length, 0)
      assert.match(
        second.plan.refused[0]!.reason,
        /replayed before, to contexts\/0\/\d+ \(--again overrides\)/,
      )
      assert.equal((await values('contexts')).length, 4)
      await log.close()
      log = await harness.open()
      assert.deepEqual((await letters())[0]!.replay?.to, done[0]!.to, 'it is noted durably')
      assert.equal((await replay(true)).done.length, 2)
      assert.equal((await values('contexts')).length, 6)
    })

    it('are replayed by one of two that do it at the same moment; the other is told where to', async () => {
      await fail('validation', 'PROMPT_TOO_LONG', context('a'), context('b'), context('c'))
      const [first] = await letters()
      const other = await harness.open()
      try {
        // Both have looked before either publishes; one wants all, the other only the first.
        const mine = await planReplay(log, deadLetters(log), OPTIONS)
        const theirs = await planReplay(other, [first!], OPTIONS)
        const both = await Promise.all([applyReplay(log, mine), applyReplay(other, theirs)])
        const done = both.flatMap(applied => applied.done)
        assert.deepEqual(done.map(({ letter }) => letter.value.key).sort(), ['a', 'b', 'c'])
        assert.equal((await values('contexts')).length, 6)
        const [{ letter, reason }, ...more] = both.flatMap(applied => applied.refused) as [
          Refused,
          ...Refused[],
        ]
        assert.deepEqual([letter.value.key, more.length], ['a', 0])
        const { topic, partition, offset } = done.find(each => each.letter.value.key === 'a')!.to
        assert.equal(reason, `another process has replayed it meanwhile, to ${topic}/${partition}/${offset}`)
        assert.deepEqual((await letters())[0]!.replay!.to, { topic, partition, offset })
      } finally {
        await other.close()
      }
    })

    it('with --again too, one replay is one record', async () => {
      await fail('validation', 'PROMPT_TOO_LONG', context('a'))
      await replay()
      const other = await harness.open()
      try {
        const again = { ...OPTIONS, again: true }
        const mine = await planReplay(log, deadLetters(log), again)
        const theirs = await planReplay(other, deadLetters(other), again)
        const both = await Promise.all([applyReplay(log, mine), applyReplay(other, theirs)])
        assert.equal(both.flatMap(({ done }) => done).length, 1)
        assert.equal((await values('contexts')).length, 3)
      } finally {
        await other.close()
      }
    })

    it('two items of one id that are replayed at the same moment give one question', async () => {
      await failItem('train:1', item('a'))
      await failItem('test:2', item('a', { question: 'Which tea?' }))
      const [first, second] = await letters()
      const other = await harness.open()
      try {
        const mine = await planReplay(log, [first!], OPTIONS)
        const theirs = await planReplay(other, [second!], OPTIONS)
        const both = await Promise.all([applyReplay(log, mine), applyReplay(other, theirs)])
        assert.equal((await values('questions')).length, 1)
        const [refused] = both.flatMap(applied => applied.refused)
        assert.match(refused!.reason, /questions already holds the id 'a'/)
      } finally {
        await other.close()
      }
    })

    it('open the topics that are complete, from their own on', async () => {
      await fail('validation', 'PROMPT_TOO_LONG', context('a'))
      await log.seal([
        'questions',
        'contexts',
        'validations',
        'instances',
        'rollouts',
        'slices',
        'deadletters',
      ])
      const { plan } = await replay()
      assert.deepEqual(plan.reopens, ['contexts', 'validations', 'instances', 'rollouts', 'slices'])
      const sealed = (await log.topics()).filter(info => info.sealed).map(({ topic }) => topic)
      assert.deepEqual(sealed.sort(), ['deadletters', 'questions'])
    })

    it('are refused where a stage at work waits for the end of what would be opened', async () => {
      await fail('validation', 'PROMPT_TOO_LONG', context('a'))
      let seen = 0
      const credits = CREDITS
      reading = log.read('contexts', { group: 'validation', credits, until: 'never' }).subscribe(() => seen++)
      await until(() => seen > 0)
      assert.equal((await replay()).done.length, 1, 'while nothing is sealed, nobody waits')
      await log.seal(['contexts'])
      await assert.rejects(replay(true), {
        code: 'GROUP_ACTIVE',
        message: /replaying opens contexts again, but validation is at work/,
      })
      assert.equal((await values('contexts')).length, 2)
    })

    it('of a batch give the instance a new one, once for all of its letters', async () => {
      await log.append([validation('a'), validation('b', { accepted: false, score: 0 })])
      await fail('rollout', 'PROMPT_TOO_LONG', ...batchOf(0, 'a'))
      const slice = (instance: string) => output('slices', 'batch 0 of 1', sliceRecord({ instance }))
      await fail('training', 'RECORD_INVALID', slice('a'), slice('a'), slice('b'))
      const { plan, done } = await replay()
      assert.equal(plan.replays.length, 1)
      assert.equal(done.length, 3)
      assert.match(plan.refused[0]!.reason, /validations holds no accepted answer of its instance 'b'/)
      assert.deepEqual(
        (await values('validations')).map(value => (value as { context: { id: string } }).context.id),
        ['a', 'b', 'a'],
      )
      assert.equal((await replay()).done.length, 0)
    })

    it('of files go to questions when they are right by now', async () => {
      await log.append([questionOutput('known')])
      await failItem('train:1', item('a', { profile: [{ id: 'p', text: 'x'.repeat(900) }] }))
      await failItem('test:2', item('b', { profile: [] }))
      await failItem('train:3', item('known'))
      await failItem('train:4', item('a'))
      await failItem('train:5', '{"id": ')
      const { plan, done } = await replay()
      assert.deepEqual(
        done.map(({ letter, to }) => [letter.value.key, to.topic]),
        [['train:1', 'questions']],
      )
      const [, added] = (await values('questions')) as { id: string; split: string }[]
      assert.deepEqual([added!.id, added!.split], ['a', 'train'])
      const reasons = plan.refused.map(({ reason }) => reason)
      assert.match(reasons[0]!, /the item is still wrong: profile is an empty list/)
      assert.match(reasons[1]!, /questions already holds the id 'known'/)
      assert.match(reasons[2]!, /questions already holds the id 'a'/)
      assert.match(reasons[3]!, /the item is still wrong/)
    })

    it('that nothing would come of are refused', async () => {
      const undecodable = new Uint8Array([1, 2, 3])
      await harness.appendRaw(log, 'contexts', 'k', undecodable)
      const [record] = await gather(log.scan('contexts'))
      assert.deepEqual([...record!.payload], [...undecodable])
      await log.append([letterOf(record as Envelope, { stage: 'validation', error: record!.error })])
      await log.append([
        deadLetterOfItem(
          'e',
          { id: 'e' },
          { stage: 'evaluation', error: new GraspError('RECORD_INVALID', 'no') },
        ),
      ])
      const { plan, done } = await replay()
      assert.equal(done.length, 0)
      assert.match(plan.refused[0]!.reason, /it still cannot be decoded: not a record of contexts/)
      assert.match(plan.refused[1]!.reason, /its item comes from evaluation, which reads no topic/)
      assert.equal((await contentOf(log, (await letters())[0]!)).error?.code, 'RECORD_UNDECODABLE')
    })

    it('in large numbers', async () => {
      // Past one note and several groups.
      const count = 1100
      const error = new GraspError('RECORD_INVALID', 'no')
      await log.append(
        Array.from({ length: count }, (_, i) =>
          deadLetterOfItem(`train:${i}`, item(`i${i}`), { stage: 'ingest', error }),
        ),
      )
      assert.equal((await replay()).done.length, count)
      assert.equal(new Set((await gather(log.scan('questions'))).map(({ key }) => key)).size, count)
      assert.equal((await replay()).done.length, 0)
      const [, second] = await letters()
      const { topic, partition, offset } = second!.replay!.to
      const [question] = await gather(log.scan(topic, { partition, from: { offset }, limit: 1 }))
      assert.equal(question!.key, 'i1')
    })
  })

  describe('names of dead letters', () => {
    it('are read in full, or in short', () => {
      assert.deepEqual(parseLetterId('deadletters/2/17'), { partition: 2, offset: 17 })
      assert.deepEqual(parseLetterId('2/17'), { partition: 2, offset: 17 })
      assert.deepEqual(parseLetterId('17'), { partition: 0, offset: 17 })
      for (const text of ['', 'x', '-1', '1/2/3', 'contexts/0/1'])
        assert.throws(() => parseLetterId(text), { code: 'CONFIG_INVALID' })
    })
  })
}

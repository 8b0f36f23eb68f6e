/** Records that are appended together with notes, on whichever log. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { Log, Place } from '../../bus/port.ts'
import type { LogHarness, MakeHarness } from './conformance.ts'
import { gather, questionOutput } from './samples.ts'

const text = (places: readonly Place[]) =>
  places.map(({ topic, partition, offset }) => `${topic}/${partition}/${offset}`).join(' ')

export function describeAppendNotes(name: string, make: MakeHarness): void {
  describe(`${name}: records together with notes`, () => {
    let harness: LogHarness
    let log: Log
    beforeEach(async () => {
      harness = await make({ partitions: { questions: 2 } })
      log = await harness.open()
    })
    afterEach(async () => {
      await log.close()
      await harness.remove()
    })

    const append = (on: Log, key: string, from: string | undefined, to = text) =>
      on.append([questionOutput(key)], { notes: [{ name: 'n', from, to }] })
    const keys = async () => (await gather(log.scan('questions'))).map(({ key }) => key)

    it('the note says where the records went, and is known at once', async () => {
      for (const key of ['a', 'b', 'c']) {
        const places = await append(log, key, await log.note('n'))
        assert.equal(await log.note('n'), text(places))
        const [place] = places
        const records = await gather(log.scan('questions', { partition: place!.partition }))
        assert.equal(records.find(({ offset }) => offset === place!.offset)?.key, key)
      }
    })

    it('where a note is another than was thought, nothing is written', async () => {
      await append(log, 'a', undefined)
      const before = await log.note('n')
      for (const from of [undefined, 'x']) {
        await assert.rejects(append(log, 'b', from), {
          code: 'NOTE_CHANGED',
          message: /the note n of the log/,
        })
        const both = [
          { name: 'm', from: undefined, to: () => 'm' },
          { name: 'n', from, to: text },
        ] as const
        await assert.rejects(log.append([], { notes: both }), { code: 'NOTE_CHANGED' })
      }
      assert.deepEqual(await keys(), ['a'])
      assert.equal(await log.note('n'), before)
      assert.equal(await log.note('m'), undefined)
    })

    it('of several that change it at once, one does', async () => {
      const others = [await harness.open(), await harness.open()]
      try {
        for (let round = 0; round < 3; round++) {
          const from = await log.note('n')
          const tries = await Promise.allSettled(
            [log, ...others].map((each, i) => append(each, `r${round} ${i}`, from)),
          )
          const winners = tries.filter(({ status }) => status === 'fulfilled')
          assert.equal(winners.length, 1)
          for (const each of tries)
            if (each.status === 'rejected')
              assert.equal(each.reason.code, 'NOTE_CHANGED', each.reason.message)
          assert.equal((await keys()).length, round + 1)
          for (const other of others) assert.equal(await other.note('n'), await log.note('n'))
        }
      } finally {
        for (const other of others) await other.close()
      }
    })

    it('a note may change without records', async () => {
      assert.deepEqual(await log.append([], { notes: [{ name: 'n', from: undefined, to: () => 'x' }] }), [])
      assert.equal(await log.note('n'), 'x')
    })
  })
}

/** Several members of one group, and records that come twice. */
import assert from 'node:assert/strict'
import { after, afterEach, describe, it } from 'node:test'
import { mergeMap } from 'rxjs'
import type { Committed } from '../../../bus/commit-in-order.ts'
import { openFlow } from '../../../bus/flow.ts'
import { partitionOf } from '../../../bus/partition.ts'
import { type Log, type LogRecord, type Output, output } from '../../../bus/port.ts'
import { findKafka } from '../../helpers/kafka-broker.ts'
import { all, gather, letter, questions, settle, until } from '../samples.ts'
import { testRun, withAdmin } from './harness.ts'

const kafka = await findKafka()
const skip = kafka.brokers ? false : kafka.skip
const brokers = kafka.brokers ?? []
if (kafka.brokers) after(() => kafka.release())

/** Short, so that members are told of a rebalance soon. */
const timeouts = { session: 6_000, transaction: 2_000 }
const credits = { records: 20, bytes: 1 << 20 }

function echo(record: LogRecord<'questions'>): Output {
  return output('deadletters', record.key, letter(record.value.id, new Uint8Array(3)))
}

/** A stage that takes its time over each record. */
function work(log: Log, milliseconds: number, seen: string[]) {
  const flow = openFlow(log, 'questions', { stage: 's', group: 'g', credits, until: 'sealed' })
  const slow = mergeMap(async (record: LogRecord<'questions'>) => {
    seen.push(record.value.id)
    await new Promise(resolve => setTimeout(resolve, milliseconds))
    return { consumed: [record], outputs: [echo(record)] }
  }, 4)
  return flow.records$.pipe(slow, flow.commit({ seal: ['deadletters'] }))
}

describe('Kafka: members of a group', { skip }, () => {
  const open: { log: Log; remove: () => Promise<void> }[] = []
  afterEach(async () => {
    for (const { log } of open) await log.close()
    await open[0]?.remove()
    open.length = 0
  })
  const start = async (run: ReturnType<typeof testRun>) => {
    const log = await run.open()
    open.push({ log, remove: run.remove })
    return log
  }

  it('share the partitions while one joins and one leaves: every record is done exactly once', async () => {
    const run = testRun(brokers, { partitions: { questions: 4 }, timeouts })
    const [one, two] = [await start(run), await start(run)]
    await one.append(questions(300))
    await one.seal(['questions'])
    const [seenByOne, seenByTwo]: [string[], string[]] = [[], []]
    const first = all(work(one, 60, seenByOne))
    await until(() => seenByOne.length > 20)
    const committed: Committed[] = []
    const second = work(two, 60, seenByTwo).subscribe(each => committed.push(each))
    await until(() => committed.length > 5)
    second.unsubscribe()
    await first
    assert.ok(seenByTwo.length > 5, 'the second member got work')
    const written = (await gather(one.scan('deadletters'))).map(record => record.value!.key)
    assert.equal(written.length, 300)
    assert.equal(new Set(written).size, 300)
    assert.ok((await one.topics()).find(info => info.topic === 'deadletters')!.sealed)
  })

  it('both come to the end, when everything of both is committed', async () => {
    const run = testRun(brokers, { partitions: { questions: 4 }, timeouts })
    const [one, two] = [await start(run), await start(run)]
    await one.append(questions(80))
    await one.seal(['questions'])
    const [seenByOne, seenByTwo]: [string[], string[]] = [[], []]
    await Promise.all([all(work(one, 30, seenByOne)), all(work(two, 30, seenByTwo))])
    const written = (await gather(one.scan('deadletters'))).map(record => record.value!.key)
    assert.equal(written.length, 80)
    assert.equal(new Set(written).size, 80)
  })

  it('refuses to commit what another member took over', async () => {
    const run = testRun(brokers, { partitions: { questions: 2 }, timeouts })
    const [one, two] = [await start(run), await start(run)]
    await one.append(questions(40))
    const held: LogRecord<'questions'>[] = []
    const lost: number[] = []
    const options = { group: 'g', credits: { records: 100, bytes: 1 << 20 }, until: 'never' as const }
    const onLost = (partitions: readonly number[]) => lost.push(...partitions)
    const first = one
      .read('questions', { ...options, onLost })
      .subscribe(record => held.push(record as never))
    await until(() => held.length === 40)
    const taken: LogRecord<'questions'>[] = []
    const second = two.read('questions', options).subscribe(record => taken.push(record as never))
    await until(() => taken.length > 0 && lost.length === 1)
    const [partition] = lost
    assert.ok(taken.every(record => record.partition === partition))
    const offset = Math.max(...taken.map(record => record.offset)) + 1
    const position = { topic: 'questions' as const, partition: partition!, offset }
    await assert.rejects(one.commit({ group: 'g', outputs: [], positions: [position] }), {
      code: 'PARTITION_LOST',
    })
    await two.commit({ group: 'g', outputs: [], positions: [position] })
    first.unsubscribe()
    second.unsubscribe()
  })

  it('are given up when they hold records and finish none', async () => {
    const run = testRun(brokers, { timeouts: { ...timeouts, stuck: 500 } })
    const log = await start(run)
    await log.append(questions(3))
    const error = await new Promise<{ code: string; message: string }>(resolve =>
      log.read('questions', { group: 'g', credits, until: 'never' }).subscribe({ error: resolve }),
    )
    assert.equal(error.code, 'STAGE_FAILED')
    assert.match(error.message, /group g holds 3 record\(s\) of questions and has finished none/)
  })
})

describe('Kafka: an output that comes twice', { skip }, () => {
  it('at the end of a partition keeps no other member waiting', async () => {
    const run = testRun(brokers, { partitions: { deadletters: 2 }, timeouts })
    const [one, two] = [await run.open(), await run.open()]
    try {
      // A key for each partition.
      const keys = [0, 1].map(p => [...'abcdefgh'].find(key => partitionOf(key, 2) === p)!)
      for (const [partition, key] of keys.entries()) {
        for (const offset of [0, 1, 1, 0]) {
          const origins = [{ topic: 'questions' as const, partition, offset, index: 0 }]
          const outputs = [output('deadletters', key, letter(`${offset}`, new Uint8Array(1)))]
          await one.commit({ group: 'up', outputs, origins, positions: [] })
        }
      }
      const seen: string[] = []
      const stage = (log: Log) => {
        const flow = openFlow(log, 'deadletters', { stage: 's', group: 'g', credits, until: 'sealed' })
        const work = mergeMap(async (record: LogRecord<'deadletters'>) => {
          seen.push(`${record.partition}: ${record.value.key}`)
          return { consumed: [record], outputs: [] }
        })
        return all(flow.records$.pipe(work, flow.commit()))
      }
      const both = [stage(one), stage(two)]
      const isShared = () =>
        withAdmin(brokers, async admin => {
          const { groups } = await admin.describeGroups([run.names.group('g')])
          return groups[0]!.state === 'Stable' && groups[0]!.members.length === 2
        })
      while (!(await isShared())) await settle()
      await one.seal(['deadletters'])
      await Promise.all(both)
      assert.deepEqual(seen.sort(), ['0: 0', '0: 1', '1: 0', '1: 1'])
    } finally {
      await Promise.all([one.close(), two.close()])
      await run.remove()
    }
  })

  it('is delivered once, also to a reader that starts between the two; after a reset it counts again', async () => {
    const run = testRun(brokers, { timeouts })
    const log = await run.open()
    try {
      const make = (offset: number) => {
        const origins = [{ topic: 'questions' as const, partition: 0, offset, index: 0 }]
        const outputs = [output('deadletters', 'k', letter(`${offset}`, new Uint8Array(1)))]
        return log.commit({ group: 'g', outputs, origins, positions: [] })
      }
      for (const offset of [0, 1, 1, 2, 0]) await make(offset)
      const read = () => all(log.read('deadletters', { group: 'down', credits, until: 'end' }))
      const keys = async () => (await read()).map(record => record.value!.key)
      assert.deepEqual(await keys(), ['0', '1', '2'])
      assert.deepEqual(
        (await gather(log.scan('deadletters'))).map(record => record.value!.key),
        ['0', '1', '2'],
      )
      // Committed half-way, by a reader, so that what it had seen is kept beside its position.
      await new Promise<void>((resolve, reject) => {
        const reading = log
          .read('deadletters', { group: 'down', credits, until: 'never' })
          .subscribe(record => {
            if (record.value!.key !== '1') return
            const { topic, partition, offset } = record
            const positions = [{ topic, partition, offset: offset + 1 }]
            log.commit({ group: 'down', outputs: [], positions }).then(() => {
              reading.unsubscribe()
              resolve()
            }, reject)
          })
      })
      assert.deepEqual(await keys(), ['2'])
      await log.append(questions(3))
      await log.seek('questions', 'g', [0])
      await make(1)
      assert.deepEqual(await keys(), ['2', '1'])
    } finally {
      await log.close()
      await run.remove()
    }
  })
})

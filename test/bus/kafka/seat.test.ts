/** What becomes of a reader's work when its group changes around it. */
import assert from 'node:assert/strict'
import { after, afterEach, describe, it } from 'node:test'
import type { Subscription } from 'rxjs'
import { openFlow } from '../../../bus/flow.ts'
import type { Log, LogRecord, Place } from '../../../bus/port.ts'
import type { GraspError } from '../../../errors/grasp-error.ts'
import { findKafka } from '../../helpers/kafka-broker.ts'
import { all, gather, letterOutput, question, questionOutput, questions, settle, until } from '../samples.ts'
import { expel, removeRecords, testRun, withAdmin, withTransactions } from './harness.ts'

const kafka = await findKafka()
const skip = kafka.brokers ? false : kafka.skip
const brokers = kafka.brokers ?? []
if (kafka.brokers) after(() => kafka.release())

const timeouts = { session: 6_000, transaction: 2_000 }
const credits = { records: 100, bytes: 1 << 20 }
const options = { group: 'g', credits, until: 'never' as const }

function past({ partition, offset }: Place) {
  return { topic: 'questions' as const, partition, offset: offset + 1 }
}

describe('Kafka: a seat in a group', { skip }, () => {
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
  function follow(log: Log) {
    const held: LogRecord<'questions'>[] = []
    const lost: number[] = []
    const onLost = (partitions: readonly number[]) => lost.push(...partitions)
    let error: GraspError | undefined
    const reading: Subscription = log.read('questions', { ...options, onLost }).subscribe({
      next: record => held.push(record as never),
      error: cause => {
        error = cause
      },
    })
    return { held, lost, reading, error: () => error }
  }

  it('that was lost and is had again, with nobody there meanwhile, keeps what is in flight', async () => {
    const run = testRun(brokers, { partitions: { questions: 2 }, timeouts })
    const log = await start(run)
    await log.append(questions(20))
    const { held, lost, reading, error } = follow(log)
    await until(() => held.length === 20)
    await expel(brokers, run.names.group('g'))
    await log.append([questionOutput('after')])
    await until(() => held.length === 21)
    assert.deepEqual(lost, [])
    assert.equal(error(), undefined)
    assert.equal(new Set(held.map(record => record.value.id)).size, 21, 'nothing came twice')
    for (const record of held) await log.commit({ group: 'g', outputs: [], positions: [past(record)] })
    reading.unsubscribe()
  })

  it('is checked in the very transaction: a commit of one who was put out waits until it is in again', async () => {
    const run = testRun(brokers, { timeouts })
    const log = await start(run)
    await log.append(questions(3))
    const { held, lost, reading } = follow(log)
    await until(() => held.length === 3)
    const refusals: string[] = []
    await withTransactions(
      transaction => {
        const send = transaction.sendOffsets.bind(transaction)
        transaction.sendOffsets = async offsets => {
          if (refusals.length === 0) await expel(brokers, run.names.group('g'))
          await send(offsets).catch(error => {
            refusals.push(error.type)
            throw error
          })
        }
      },
      () => log.commit({ group: 'g', outputs: [letterOutput('once', 5)], positions: [past(held[1]!)] }),
    )
    assert.deepEqual(refusals, ['UNKNOWN_MEMBER_ID'])
    assert.deepEqual(lost, [])
    assert.equal((await gather(log.scan('deadletters'))).length, 1)
    assert.deepEqual(await log.committed('questions', 'g'), [held[1]!.offset + 1])
    reading.unsubscribe()
  })

  it('that another member had meanwhile is lost, also where it comes back', async () => {
    const short = { ...timeouts, rebalance: 2_000 }
    const run = testRun(brokers, { partitions: { questions: 2 }, timeouts: short })
    const [one, two] = [await start(run), await start(run)]
    await one.append(questions(20))
    const first = follow(one)
    await until(() => first.held.length === 20)
    // While a commit is under way it cannot join again, and so it is put out when the other one comes.
    let goOn = () => {}
    const gate = new Promise<void>(resolve => {
      goOn = resolve
    })
    let isUnderWay = false
    let outcome = ''
    await withTransactions(
      transaction => {
        const commit = transaction.commit.bind(transaction)
        transaction.commit = async () => {
          isUnderWay = true
          await gate
          return commit()
        }
      },
      async () => {
        one
          .commit({ group: 'g', outputs: [letterOutput('late', 5)], positions: [past(first.held[0]!)] })
          .then(
            () => {
              outcome = 'committed'
            },
            error => {
              outcome = error.code
            },
          )
        await until(() => isUnderWay)
      },
    )
    const second = follow(two)
    await until(() => second.held.length === 20)
    const done = second.held.filter(({ partition }) => partition === first.held[0]!.partition)
    const positions = [past(done.at(-1)!)]
    await two.commit({ group: 'g', outputs: [letterOutput('of the other', 5)], positions })
    await two.close()
    goOn()
    await until(() => outcome !== '' && first.lost.length > 0)
    assert.equal(outcome, 'PARTITION_LOST')
    assert.ok(first.lost.includes(first.held[0]!.partition))
    const written = (await gather(one.scan('deadletters'))).map(({ value }) => value!.key)
    assert.deepEqual(written, ['of the other'])
    first.reading.unsubscribe()
  })

  it('goes to the next reader of the process, and nobody else notices', async () => {
    const run = testRun(brokers, { partitions: { questions: 4 }, timeouts })
    const [one, two] = [await start(run), await start(run)]
    await one.append(questions(40))
    const other = follow(two)
    await until(() => other.held.length === 40)
    let own = follow(one)
    await until(() => own.held.length > 0)
    const given = new Set(other.lost)
    assert.equal(given.size, 2)
    for (let i = 0; i < 4; i++) {
      own.reading.unsubscribe()
      own = follow(one)
      await until(() => new Set(own.held.map(record => record.partition)).size === 2)
      assert.deepEqual(new Set(own.held.map(record => record.partition)), given)
    }
    assert.equal(other.lost.length, 2)
    // Who does not come back leaves.
    own.reading.unsubscribe()
    await until(() => new Set(other.held.slice(40).map(record => record.partition)).size === 2)
    other.reading.unsubscribe()
  })

  it('that was left gives no right to commit', async () => {
    const run = testRun(brokers, { timeouts })
    const log = await start(run)
    await log.append(questions(3))
    const { held, reading } = follow(log)
    await until(() => held.length === 3)
    reading.unsubscribe()
    while ((await log.workers('g')).length > 0) await settle()
    const commit = () =>
      log.commit({ group: 'g', outputs: [letterOutput('x', 5)], positions: [past(held[0]!)] })
    await assert.rejects(commit(), { code: 'PARTITION_LOST', message: /this process has left group g/ })
    assert.deepEqual(await gather(log.scan('deadletters')), [])
    const again = follow(log)
    await until(() => again.held.length === 3)
    await commit()
    again.reading.unsubscribe()
  })

  it('is kept at the end while what was let go of is not committed', async () => {
    const run = testRun(brokers, { timeouts })
    const log = await start(run)
    await log.append(questions(3))
    await log.seal(['questions'])
    const flow = openFlow(log, 'questions', { stage: 's', group: 'g', credits, until: 'sealed' })
    const records = await all(flow.deliveries$)
    flow.release(records)
    await new Promise(resolve => setTimeout(resolve, 1_000))
    assert.equal((await log.workers('g')).length, 1)
    await log.commit({ group: 'g', outputs: [], positions: [past(records.at(-1)!)] })
    while ((await log.workers('g')).length > 0) await settle()
  })

  it('is none for a log that is only looked at', async () => {
    const run = testRun(brokers, { timeouts })
    const log = await start(run)
    await log.append(questions(1))
    const looking = testRun(brokers, { run: run.run, readOnly: true })
    const only = await start(looking)
    await assert.rejects(all(only.read('questions', { ...options, until: 'end' })), {
      code: 'LOG_UNAVAILABLE',
      message: /opened for looking only/,
    })
    assert.deepEqual(await log.workers('g'), [])
  })
})

describe('Kafka: where a group goes on', { skip }, () => {
  const readAll = (log: Log) => all(log.read('questions', { ...options, until: 'end' }))

  it('is not made up where the cluster has forgotten it', async () => {
    const run = testRun(brokers, { timeouts })
    let log = await run.open()
    try {
      await log.append(questions(5, () => 'k'))
      const records = await readAll(log)
      await log.commit({ group: 'g', outputs: [], positions: [past(records[2]!)] })
      await log.close()
      await withAdmin(brokers, admin => admin.deleteGroups([run.names.group('g')]))
      log = await run.open()
      await assert.rejects(readAll(log), (error: GraspError) => {
        assert.equal(error.code, 'LOG_MISMATCH')
        assert.match(error.message, /forgotten where group g was in questions\/0.*grasp reset --stage g --to/)
        return true
      })
      await log.seek('questions', 'g', [3])
      assert.deepEqual(
        (await readAll(log)).map(({ value }) => value!.id),
        ['q3', 'q4'],
      )
    } finally {
      await log.close()
      await run.remove()
    }
  })

  it('is told when the records that come next are gone, and reset goes on with what is left', async () => {
    const run = testRun(brokers, { timeouts })
    const log = await run.open()
    try {
      await log.append(questions(6, () => 'k'))
      const remove = (offset: number) => removeRecords(brokers, run.names.topic('questions'), offset)
      await remove(1)
      // A group that never was there begins where the log does.
      const records = await readAll(log)
      assert.equal(records.length, 5)
      await log.commit({ group: 'g', outputs: [], positions: [past(records[0]!)] })
      await remove(4)
      await assert.rejects(readAll(log), (error: GraspError) => {
        assert.equal(error.code, 'LOG_MISMATCH')
        assert.match(error.message, /group g is to go on at offset 2 of questions\/0, but .* before 4/)
        return true
      })
      await log.seek('questions', 'g', [0])
      assert.deepEqual(
        (await readAll(log)).map(({ value }) => value!.id),
        ['q4', 'q5'],
      )
    } finally {
      await log.close()
      await run.remove()
    }
  })

  it('is told when they go while the group reads', async () => {
    const run = testRun(brokers, { timeouts })
    const log = await run.open()
    try {
      const text = 'x'.repeat(100_000)
      const outputs = Array.from({ length: 30 }, (_, i) => ({
        ...questionOutput(`q${i}`, 'k'),
        value: question(`q${i}`, text),
      }))
      for (const each of outputs) await log.append([each])
      const few = { records: 1, bytes: 1000 }
      const held: Place[] = []
      const failed = new Promise<GraspError>(resolve =>
        log.read('questions', { ...options, credits: few }).subscribe({
          next: record => held.push(record),
          error: resolve,
        }),
      )
      await until(() => held.length === 1)
      await removeRecords(brokers, run.names.topic('questions'), 20)
      const commitAll = async () => {
        for (let done = 0; ; done++) {
          await until(() => held.length > done)
          await log.commit({ group: 'g', outputs: [], positions: [past(held[done]!)] })
        }
      }
      const error = await Promise.race([failed, commitAll().catch(() => failed)])
      assert.equal(error.code, 'LOG_MISMATCH')
      assert.match(error.message, /group g is to go on at offset \d+ of questions\/0, but .* before 20/)
    } finally {
      await log.close()
      await run.remove()
    }
  })
})

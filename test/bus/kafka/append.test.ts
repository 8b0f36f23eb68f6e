/** Writing records outside of stages: all or none, and never past what another process wrote. */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, it } from 'node:test'
import type { Transaction } from 'kafkajs'
import type { Log } from '../../../bus/port.ts'
import type { GraspError } from '../../../errors/grasp-error.ts'
import { findKafka } from '../../helpers/kafka-broker.ts'
import { gather, letterOutput, questionOutput, questions } from '../samples.ts'
import { testRun, withTransactions } from './harness.ts'

const kafka = await findKafka()
const skip = kafka.brokers ? false : kafka.skip
const brokers = kafka.brokers ?? []
if (kafka.brokers) after(() => kafka.release())

describe('Kafka: append', { skip }, () => {
  let run: ReturnType<typeof testRun>
  let log: Log
  beforeEach(async () => {
    run = testRun(brokers, { partitions: { questions: 3 } })
    log = await run.open()
  })
  afterEach(async () => {
    await log.close()
    await run.remove()
  })
  const ids = async () => (await gather(log.scan('questions'))).map(({ value }) => value!.id)
  const append = (to: Log, id: string) =>
    to.append([questionOutput(id, 'k')], { after: { topic: 'questions', ends: [0, 0, 0] } })

  for (const step of ['sendBatch', 'commit'] as const) {
    it(`after an end is refused where another writer came between the look at the end and ${step}`, async () => {
      const slow = await run.open()
      try {
        let reached = () => {}
        let goOn = () => {}
        const isThere = new Promise<void>(resolve => {
          reached = resolve
        })
        const gate = new Promise<void>(resolve => {
          goOn = resolve
        })
        const hold = (transaction: Transaction) => {
          const work = transaction[step].bind(transaction) as () => Promise<never>
          transaction[step] = async (...args: []) => {
            reached()
            await gate
            return work(...args)
          }
        }
        let refused: Promise<void> | undefined
        await withTransactions(hold, async () => {
          const appending = append(slow, 'slow')
          refused = assert.rejects(appending, (error: GraspError) => {
            assert.equal(error.code, 'LOG_UNAVAILABLE')
            assert.match(error.message, /another process writes to questions/)
            return true
          })
          await isThere
        })
        await append(log, 'quick')
        goOn()
        await refused
        assert.deepEqual(await ids(), ['quick'])
      } finally {
        await slow.close()
      }
    })
  }

  it('after an end goes on where another one only tried', async () => {
    const other = await run.open()
    try {
      const ends = [0, 0, 0]
      const next = async (id: string) => {
        const after = { topic: 'questions', ends } as const
        const [place] = await log.append([questionOutput(id, 'k')], { after })
        ends[place!.partition] = place!.offset + 1
      }
      await next('one')
      await assert.rejects(append(other, 'in vain'), { code: 'LOG_UNAVAILABLE' })
      await next('two')
      assert.deepEqual(await ids(), ['one', 'two'])
    } finally {
      await other.close()
    }
  })

  it('of many records leaves none of them where it fails half-way', async () => {
    let sent = 0
    const fail = (transaction: Transaction) => {
      const send = transaction.sendBatch.bind(transaction)
      transaction.sendBatch = async batch => {
        if (++sent === 2) throw new Error('a cable was pulled')
        return send(batch)
      }
    }
    // More than one request takes.
    const outputs = Array.from({ length: 12 }, (_, i) => letterOutput(`${i}`, 20_000))
    const small = testRun(brokers, { maxMessageBytes: 70_000 })
    const tight = await small.open()
    try {
      await withTransactions(fail, () =>
        assert.rejects(tight.append(outputs), { code: 'LOG_UNAVAILABLE', message: /a cable was pulled/ }),
      )
      assert.equal(sent, 2)
      assert.deepEqual(await gather(tight.scan('deadletters')), [])
      await tight.append(outputs)
      assert.equal((await gather(tight.scan('deadletters'))).length, 12)
    } finally {
      await tight.close()
      await small.remove()
    }
  })

  it('and commits of several groups may write at once', async () => {
    const work = [0, 1, 2, 3, 4, 5].map(i =>
      log.commit({ group: `g${i}`, outputs: [letterOutput(`${i}`, 5)], positions: [] }),
    )
    await Promise.all([...work, log.append(questions(30)), log.append(questions(30))])
    assert.equal((await gather(log.scan('deadletters'))).length, 6)
    assert.equal((await ids()).length, 60)
  })
})

/** Of several processes that evaluate a run, one does so at a time. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import pino from 'pino'
import type { Log } from '../../bus/port.ts'
import { evaluationTurn } from '../../pipelines/evaluation-turn.ts'
import { stageLags } from '../../pipelines/operate/lag.ts'
import type { MakeHarness } from '../bus/conformance.ts'
import { makeKafkaHarness } from '../bus/kafka/harness.ts'
import { makeLmdbHarness } from '../bus/lmdb/harness.ts'
import { settle } from '../bus/samples.ts'
import { findKafka } from '../helpers/kafka-broker.ts'
import { context } from './operate/samples.ts'

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
const kafka = await findKafka()

describeTurns('LMDB', makeLmdbHarness)
if (kafka.brokers) {
  after(() => kafka.release())
  describeTurns('Kafka', makeKafkaHarness(kafka.brokers))
} else {
  describe('Kafka: turns of evaluation', () => {
    it('works', { skip: kafka.skip }, () => {})
  })
}

function describeTurns(name: string, make: MakeHarness): void {
  describe(`${name}: turns of evaluation`, () => {
    it('a second one waits, says so, and goes on when the first one ends', async () => {
      const harness = await make({})
      const [first, second] = [await harness.open(), await harness.open()]
      const said: string[] = []
      const logger = pino({}, { write: line => said.push((JSON.parse(line) as { msg: string }).msg) })
      const take = (log: Log) => evaluationTurn({ log, logger, stopped: () => false })
      try {
        await first.append([context('a')])
        const turn = await take(first)
        while ((await second.workers('evaluation')).length === 0) await settle()
        assert.deepEqual(said, [])
        const lag = (await stageLags(second)).find(({ stage }) => stage === 'evaluation')
        assert.equal(lag?.workers.length, 1)

        const order: string[] = []
        const waiting = take(second).then(taken => {
          order.push('second')
          return taken
        })
        while (said.length === 0) await settle()
        assert.match(
          said[0]!,
          /^evaluation is at work already \(process \d+ .*\); this one waits until it ends$/,
        )
        order.push('first ends')
        turn[Symbol.dispose]()
        ;(await waiting)[Symbol.dispose]()
        assert.deepEqual(order, ['first ends', 'second'])
        assert.equal(said.length, 1)
      } finally {
        await Promise.all([first.close(), second.close()])
        await harness.remove()
      }
    })

    it('one that is to stop does not wait', async () => {
      const harness = await make({})
      const [first, second] = [await harness.open(), await harness.open()]
      const logger = pino({ level: 'silent' })
      try {
        await first.append([context('a')])
        using _turn = await evaluationTurn({ log: first, logger, stopped: () => false })
        while ((await second.workers('evaluation')).length === 0) await settle()
        const stopped = await evaluationTurn({ log: second, logger, stopped: () => true })
        stopped[Symbol.dispose]()
      } finally {
        await Promise.all([first.close(), second.close()])
        await harness.remove()
      }
    })
  })
}

/** Stages that one process does at a time. */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, it } from 'node:test'
import pino from 'pino'
import type { Log } from '../../bus/port.ts'
import type { Config } from '../../pipelines/config/config.ts'
import { stageLags } from '../../pipelines/operate/lag.ts'
import { takeTurn } from '../../pipelines/turn.ts'
import type { LogHarness, MakeHarness } from '../bus/conformance.ts'
import { makeKafkaHarness } from '../bus/kafka/harness.ts'
import { makeLmdbHarness } from '../bus/lmdb/harness.ts'
import { settle } from '../bus/samples.ts'
import { findKafka } from '../helpers/kafka-broker.ts'

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
const kafka = await findKafka()

describeTurns('LMDB', 'embedded', makeLmdbHarness)
if (kafka.brokers) {
  after(() => kafka.release())
  describeTurns('Kafka', 'kafka', makeKafkaHarness(kafka.brokers))
} else {
  describe('Kafka: turns', () => {
    it('works', { skip: kafka.skip }, () => {})
  })
}

function describeTurns(name: string, kind: 'embedded' | 'kafka', make: MakeHarness): void {
  describe(`${name}: turns`, () => {
    let harness: LogHarness
    let logs: Log[]
    let said: string[]
    beforeEach(async () => {
      harness = await make({ partitions: { policies: 2 } })
      logs = [await harness.open(), await harness.open(), await harness.open()]
      said = []
    })
    afterEach(async () => {
      await Promise.all(logs.map(log => log.close()))
      await harness.remove()
    })
    const config = { log: { kind } } as Config
    const logger = pino({}, { write: line => said.push((JSON.parse(line) as { msg: string }).msg) })
    type Stage = Parameters<typeof takeTurn>[1]
    const take = (log: Log, stage: Stage = 'evaluation', stopped = () => false) =>
      takeTurn({ config, log, logger, stopped }, stage)

    it('a second one waits, says so, and goes on when the first one ends', async () => {
      const [first, second] = logs as [Log, Log]
      const turn = await take(first)
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
    })

    it('one that is to stop does not wait', async () => {
      using _turn = await take(logs[0]!)
      ;(await take(logs[1]!, 'evaluation', () => true))[Symbol.dispose]()
    })

    if (kind === 'kafka') {
      it('of several that begin in the same moment one goes first, then each of the others', async () => {
        let [working, most] = [0, 0]
        const work = async (log: Log) => {
          using _turn = await take(log, 'filtering')
          most = Math.max(most, ++working)
          await settle()
          working--
        }
        await Promise.all(logs.map(work))
        assert.equal(most, 1)
      })
    } else {
      it('the embedded log needs no turns where it refuses the second one by itself', async () => {
        using _first = await take(logs[0]!, 'filtering')
        using _second = await take(logs[1]!, 'filtering')
        assert.deepEqual(said, [])
      })
    }
  })
}

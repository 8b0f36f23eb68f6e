/** Operating a run on Kafka. */
import { after, describe, it } from 'node:test'
import { makeKafkaHarness } from '../../bus/kafka/harness.ts'
import { findKafka } from '../../helpers/kafka-broker.ts'
import { describeLag } from './lag-cases.ts'
import { describeRecords } from './records-cases.ts'
import { describeReplay } from './replay-cases.ts'
import { describeReset } from './reset-cases.ts'

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
const kafka = await findKafka()

if (kafka.brokers) {
  after(() => kafka.release())
  const make = makeKafkaHarness(kafka.brokers)
  describeRecords('Kafka', make)
  describeLag('Kafka', make)
  describeReset('Kafka', make)
  describeReplay('Kafka', make)
} else {
  describe('Kafka: operating a run', () => {
    it('works', { skip: kafka.skip }, () => {})
  })
}

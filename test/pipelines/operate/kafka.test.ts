/** Looking into a run on Kafka: records and lag. (Resetting and replaying are tested on the embedded log.) */
import { after, describe, it } from 'node:test'
import { makeKafkaHarness } from '../../bus/kafka/harness.ts'
import { findKafka } from '../../helpers/kafka-broker.ts'
import { describeLag } from './lag-cases.ts'
import { describeRecords } from './records-cases.ts'

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
const kafka = await findKafka()

if (kafka.brokers) {
  after(() => kafka.release())
  const make = makeKafkaHarness(kafka.brokers)
  describeRecords('Kafka', make)
  describeLag('Kafka', make)
} else {
  describe('Kafka: operating a run', () => {
    it('works', { skip: kafka.skip }, () => {})
  })
}

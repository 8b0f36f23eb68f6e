import { after, describe, it } from 'node:test'
import { findKafka } from '../../helpers/kafka-broker.ts'
import { describeLog } from '../conformance.ts'
import { makeKafkaHarness } from './harness.ts'

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
const kafka = await findKafka()

if (kafka.brokers) {
  after(() => kafka.release())
  describeLog('Kafka', makeKafkaHarness(kafka.brokers))
} else {
  describe('Kafka: the log port', () => {
    it('works', { skip: kafka.skip }, () => {})
  })
}

import { after, describe, it } from 'node:test'
import { findKafka } from '../helpers/kafka-broker.ts'
import { describeAppendNotes } from './append-notes.ts'
import { makeKafkaHarness } from './kafka/harness.ts'
import { makeLmdbHarness } from './lmdb/harness.ts'

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
const kafka = await findKafka()

describeAppendNotes('LMDB', makeLmdbHarness)
if (kafka.brokers) {
  after(() => kafka.release())
  describeAppendNotes('Kafka', makeKafkaHarness(kafka.brokers))
} else {
  describe('Kafka: records together with notes', () => {
    it('works', { skip: kafka.skip }, () => {})
  })
}

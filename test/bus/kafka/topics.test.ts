/** What topics are made with. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import kafkajs from 'kafkajs'
import { openKafkaLog } from '../../../bus/kafka/log.ts'
import { TOPICS } from '../../../schemas/types.ts'
import { findKafka } from '../../helpers/kafka-broker.ts'
import { testRun, withAdmin } from './harness.ts'

const kafka = await findKafka()
const skip = kafka.brokers ? false : kafka.skip
const brokers = kafka.brokers ?? []
if (kafka.brokers) after(() => kafka.release())

const WATCHED = ['cleanup.policy', 'retention.ms', 'retention.bytes', 'max.message.bytes']

async function settingsOf(topics: readonly string[]): Promise<Map<string, Record<string, string>>> {
  const { resources } = await withAdmin(brokers, admin =>
    admin.describeConfigs({
      includeSynonyms: false,
      resources: topics.map(name => ({
        type: kafkajs.ConfigResourceTypes.TOPIC,
        name,
        configNames: WATCHED,
      })),
    }),
  )
  return new Map(
    resources.map(({ resourceName, configEntries }) => [
      resourceName,
      Object.fromEntries(configEntries.map(({ configName, configValue }) => [configName, configValue])),
    ]),
  )
}

describe('Kafka: topics', { skip }, () => {
  it('get partitions, replicas, retention, size and compaction as asked for', async () => {
    const options = {
      partitions: { questions: 3 },
      replication: 1,
      retentionHours: 5,
      maxMessageBytes: 1 << 20,
    }
    const run = testRun(brokers, options)
    await (await run.open()).close()
    try {
      const names = [...TOPICS.map(topic => run.names.topic(topic)), run.names.meta]
      const settings = await settingsOf(names)
      const compacted = [run.names.topic('policies'), run.names.meta]
      for (const name of names) {
        const { 'cleanup.policy': policy, ...rest } = settings.get(name)!
        assert.equal(rest['max.message.bytes'], String(1 << 20), name)
        assert.equal(policy, compacted.includes(name) ? 'compact' : 'delete', name)
        if (policy === 'compact') continue
        assert.equal(rest['retention.ms'], String(5 * 3_600_000), name)
        assert.equal(rest['retention.bytes'], '-1', name)
      }
      const { topics } = await withAdmin(brokers, admin => admin.fetchTopicMetadata({ topics: names }))
      const shapes = new Map(
        topics.map(({ name, partitions }) => [name, partitions.map(each => each.replicas.length)]),
      )
      assert.deepEqual(shapes.get(run.names.topic('questions')), [1, 1, 1])
      assert.deepEqual(shapes.get(run.names.topic('contexts')), [1])
      assert.deepEqual(shapes.get(run.names.meta), [1])
      await assert.rejects(openKafkaLog({ ...run.settings, retentionHours: 6 }), {
        code: 'LOG_MISMATCH',
        message: /retention\.ms is 18000000, expected 21600000/,
      })
      await assert.rejects(openKafkaLog({ ...run.settings, replication: 2 }), {
        code: 'LOG_MISMATCH',
        message: /replication is 1, expected 2; set log\.replication to 1/,
      })
    } finally {
      await run.remove()
    }
  })

  it('are kept for ever unless told', async () => {
    const run = testRun(brokers)
    await (await run.open()).close()
    try {
      const name = run.names.topic('slices')
      assert.equal((await settingsOf([name])).get(name)!['retention.ms'], '-1')
    } finally {
      await run.remove()
    }
  })
})

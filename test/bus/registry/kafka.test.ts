/** The log on a real Kafka with a real schema registry. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { Kafka, logLevel } from 'kafkajs'
import { openKafkaLog } from '../../../bus/kafka/log.ts'
import { Names } from '../../../bus/kafka/names.ts'
import { createRegistryCodec } from '../../../bus/registry/codec.ts'
import { Registry } from '../../../bus/registry/registry.ts'
import { loadSchemas } from '../../../schemas/load.ts'
import { findKafka } from '../../helpers/kafka-broker.ts'
import { findRegistry } from '../../helpers/schema-registry.ts'
import { all, gather, question, questionOutput } from '../samples.ts'

const kafka = await findKafka()
const registry = kafka.brokers === undefined ? { skip: kafka.skip } : await findRegistry()
const skip = 'skip' in registry ? registry.skip : false

describe('the log on Kafka with a schema registry', { skip }, () => {
  after(async () => {
    if (!('skip' in registry)) await registry.stop()
    if (kafka.brokers !== undefined) await kafka.release()
  })
  const brokers = [...(kafka.brokers ?? [])]
  const names = (run: string) => new Names('test', run)

  const open = (run: string, schemas = loadSchemas(), url = registry.url!) => {
    const asked = new Registry({ url, waitMs: 300 })
    const codec = createRegistryCodec({
      registry: asked,
      topicName: topic => names(run).topic(topic),
      schemas,
    })
    return openKafkaLog({ brokers, run, prefix: 'test', codec })
  }
  async function writeRaw(run: string, value: Uint8Array): Promise<void> {
    const client = new Kafka({ brokers, logLevel: logLevel.NOTHING })
    const producer = client.producer()
    await producer.connect()
    await producer.send({
      topic: names(run).topic('questions'),
      messages: [{ key: 'k', value: Buffer.from(value) }],
    })
    await producer.disconnect()
  }

  test('records go in and out, of an older version too, and an unknown schema condemns one record', async () => {
    const run = randomUUID()
    const grown = new Map(loadSchemas())
    const schema = grown.get('questions')!
    const fields = [...schema.fields!, { name: 'language', type: 'string', default: 'en' }]
    grown.set('questions', { ...schema, fields })
    const older = await open(run)
    await older.append([questionOutput('q1')])
    await older.close()
    await writeRaw(run, Uint8Array.of(0, 0x7f, 0xff, 0xff, 0xff, 1))
    const log = await open(run, grown)
    try {
      await log.append([
        { topic: 'questions', key: 'k', value: { ...question('q2'), language: 'de' } as never },
      ])
      const credits = { records: 10, bytes: 1 << 20 }
      const read = await all(log.read('questions', { group: 'g', credits, until: 'end' }))
      assert.deepEqual(
        read.map(({ value, error }) => value ?? error?.code),
        [{ ...question('q1'), language: 'en' }, 'SCHEMA_UNKNOWN', { ...question('q2'), language: 'de' }],
      )
      // Whoever has the registry can read them.
      const [first] = await gather(log.scan('questions'))
      assert.equal(first!.payload[0], 0)
    } finally {
      await log.close()
    }
  })

  test('a registry that is down stops writers and readers with a clear error, and loses nothing', async () => {
    const run = randomUUID()
    const log = await open(run)
    await log.append([questionOutput('q1')])
    await log.close()
    const cut = await open(run, loadSchemas(), 'http://127.0.0.1:1')
    try {
      const told = { code: 'LOG_UNAVAILABLE', message: /schema registry at .* cannot be reached/ }
      await assert.rejects(cut.append([questionOutput('q2')]), told)
      const credits = { records: 10, bytes: 1 << 20 }
      await assert.rejects(all(cut.read('questions', { group: 'g', credits, until: 'end' })), told)
    } finally {
      await cut.close()
    }
    const again = await open(run)
    try {
      assert.deepEqual(
        (await gather(again.scan('questions'))).map(({ value }) => value),
        [question('q1')],
      )
    } finally {
      await again.close()
    }
  })
})

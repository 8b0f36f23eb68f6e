/** The settings of the compose file's Kafka and schema registry, on a real Kafka with a real registry. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'
import kafkajs, { type Admin, Kafka, logLevel } from 'kafkajs'
import { parse } from 'yaml'
import { createRegistryCodec } from '../../bus/registry/codec.ts'
import { Registry } from '../../bus/registry/registry.ts'
import { question } from '../bus/samples.ts'
import { findKafka } from '../helpers/kafka-broker.ts'
import { KAFKA_VERSION } from '../helpers/kafka-jars.ts'
import { lacksOwnRegistry, REGISTRY_VERSION, RegistryProcess } from '../helpers/schema-registry.ts'

interface Service {
  readonly image: string
  readonly environment: Readonly<Record<string, string>>
}

const kafka = await findKafka()
const skip = kafka.brokers === undefined ? kafka.skip : ((await lacksOwnRegistry()) ?? false)
const file = new URL('../../docker/compose.yaml', import.meta.url)
const { services } = parse(await readFile(file, 'utf8'), { merge: true }) as {
  services: { kafka: Service; registry: Service }
}

test('the images are of the versions that the tests run', () => {
  assert.equal(services.kafka.image, `apache/kafka:${KAFKA_VERSION}`)
  assert.equal(services.registry.image, `apicurio/apicurio-registry:${REGISTRY_VERSION}`)
})

describe("the compose file's Kafka and registry", { skip }, () => {
  const brokers = [...(kafka.brokers ?? [])]
  const journal = `journal-${randomUUID()}`
  let admin: Admin
  let registry: RegistryProcess | undefined
  before(async () => {
    admin = new Kafka({ brokers, logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
  })
  after(async () => {
    await registry?.stop()
    await admin.disconnect()
    if (kafka.brokers !== undefined) await kafka.release()
  })
  const settingsOf = async (type: number, name: string) => {
    const { resources } = await admin.describeConfigs({ resources: [{ type, name }], includeSynonyms: false })
    return new Map(resources[0]!.configEntries.map(entry => [entry.configName, entry.configValue]))
  }

  test('Kafka knows every setting', async () => {
    const [node] = (await admin.describeCluster()).brokers
    const known = await settingsOf(kafkajs.ConfigResourceTypes.BROKER, String(node!.nodeId))
    for (const variable of Object.keys(services.kafka.environment)) {
      if (variable === 'KAFKA_HEAP_OPTS') continue
      const name = variable.replace('KAFKA_', '').toLowerCase().replaceAll('_', '.')
      assert.ok(known.has(name), `Kafka has no setting ${name}`)
    }
  })

  test('the registry keeps its schemas in Kafka, for ever, and has them after it was killed', async () => {
    registry = await RegistryProcess.create({
      ...services.registry.environment,
      APICURIO_KAFKASQL_BOOTSTRAP_SERVERS: brokers.join(','),
      APICURIO_KAFKASQL_TOPIC: journal,
      APICURIO_KAFKASQL_SNAPSHOTS_TOPIC: `${journal}-snapshots`,
    })
    await registry.start()
    const codec = () => {
      const asked = new Registry({ url: registry!.url, waitMs: 30_000 })
      return createRegistryCodec({ registry: asked, topicName: topic => `${journal}.${topic}` })
    }
    const before = codec()
    await before.prepareToEncode(['contexts'])
    await before.prepareToEncode(['questions'])
    const bytes = before.encode('questions', question('q1'))
    const settings = await settingsOf(kafkajs.ConfigResourceTypes.TOPIC, journal)
    assert.equal(settings.get('retention.ms'), '-1')
    assert.equal(settings.get('retention.bytes'), '-1')
    assert.equal(settings.get('cleanup.policy'), 'delete')

    await registry.kill()
    await registry.start()
    const reader = codec()
    await reader.prepareToDecode('questions', bytes)
    assert.deepEqual(reader.decode('questions', bytes), question('q1'))
    // And under the same id.
    const again = codec()
    await again.prepareToEncode(['questions'])
    assert.deepEqual(again.encode('questions', question('q1')), bytes)
  })
})

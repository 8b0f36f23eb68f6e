/** The log on a real Kafka with a real schema registry. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request as proxyRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, test } from 'node:test'
import { Kafka, logLevel } from 'kafkajs'
import { openKafkaLog } from '../../../bus/kafka/log.ts'
import { Names } from '../../../bus/kafka/names.ts'
import { createRegistryCodec } from '../../../bus/registry/codec.ts'
import { Registry } from '../../../bus/registry/registry.ts'
import { loadSchemas } from '../../../schemas/load.ts'
import { findKafka } from '../../helpers/kafka-broker.ts'
import { findRegistry } from '../../helpers/schema-registry.ts'
import { all, gather, letterOutput, question, questionOutput } from '../samples.ts'

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

  const open = (run: string, schemas = loadSchemas(), url = registry.url!, waitMs = 300) => {
    const asked = new Registry({ url, waitMs })
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

  test('a registry that is away for a while holds up who needs it, and nobody else', async () => {
    const run = randomUUID()
    const way = await Way.to(registry.url!)
    const log = await open(run, loadSchemas(), way.url, 120_000)
    const reader = await open(run, loadSchemas(), way.url, 120_000)
    const credits = { records: 10, bytes: 1 << 20 }
    const values = async (group: string) => {
      const read = await all(reader.read('questions', { group, credits, until: 'end' }))
      return read.map(({ value }) => value)
    }
    try {
      await log.append([questionOutput('q1')])
      await values('first')
      assert.equal(way.requests.filter(request => request.includes('/schemas/ids/')).length, 1)
      await way.close()
      await log.append([questionOutput('q2')])
      assert.deepEqual(await values('second'), [question('q1'), question('q2')])

      const other = log.append([letterOutput('d1', 10)])
      await new Promise(resolve => setTimeout(resolve, 500))
      await way.open()
      await other
      assert.equal((await gather(log.scan('deadletters'))).length, 1)
    } finally {
      await reader.close()
      await log.close()
      await way.close()
    }
  })

  test('closing does not wait for a registry that is away, and leaves the group', async () => {
    const run = randomUUID()
    const writer = await open(run)
    await writer.append([questionOutput('q1')])
    await writer.close()
    const way = await Way.to(registry.url!)
    await way.close()
    const log = await open(run, loadSchemas(), way.url, 600_000)
    const told = { code: 'LOG_UNAVAILABLE', message: /closed/ }
    const append = assert.rejects(log.append([questionOutput('q2')]), told)
    const credits = { records: 10, bytes: 1 << 20 }
    const read = assert.rejects(all(log.read('questions', { group: 'g', credits, until: 'end' })), told)
    const admin = new Kafka({ brokers, logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    const members = async () =>
      (await admin.describeGroups([names(run).group('g')])).groups[0]!.members.length
    try {
      while ((await members()) === 0) await new Promise(resolve => setTimeout(resolve, 50))
      await log.close()
      await Promise.all([append, read])
      assert.equal(await members(), 0)
    } finally {
      await admin.disconnect()
      await log.close()
    }
  })
})

/** A way to a registry that can be closed, as if the registry were down. */
class Way {
  readonly requests: string[] = []
  readonly #target: URL
  #server: Server | undefined
  #port = 0

  private constructor(target: string) {
    this.#target = new URL(target)
  }

  static async to(target: string): Promise<Way> {
    const way = new Way(target)
    await way.open()
    return way
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}${this.#target.pathname}`
  }

  async open(): Promise<void> {
    const { hostname: host, port } = this.#target
    const server = createServer((request, response) => {
      this.requests.push(request.url!)
      const { method, headers, url: path } = request
      const onward = proxyRequest({ host, port, path, method, headers }, answer => {
        response.writeHead(answer.statusCode!, answer.headers)
        answer.pipe(response)
      })
      request.pipe(onward)
    }).listen(this.#port, '127.0.0.1')
    await once(server, 'listening')
    this.#server = server
    this.#port = (server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    server.closeAllConnections()
    await once(server.close(), 'close')
  }
}

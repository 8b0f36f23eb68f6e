/** A client that may read only so much a second. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { after, it } from 'node:test'
import { Client } from '../../../bus/kafka/client.ts'
import { findKafka } from '../../helpers/kafka-broker.ts'
import { all, gather, letterOutput } from '../samples.ts'
import { testRun } from './harness.ts'

const kafka = await findKafka()
const options = kafka.brokers ? {} : { skip: kafka.skip }
const brokers = kafka.brokers ?? []
if (kafka.brokers) after(() => kafka.release())

const require = createRequire(import.meta.url)
const Encoder = require('kafkajs/src/protocol/encoder')
const Decoder = require('kafkajs/src/protocol/decoder')

/** kafkajs has no request for it. */
async function setQuota(clientId: string, bytesPerSecond: number): Promise<void> {
  const cluster = new Client({ brokers, run: 'quota' }).cluster() as unknown as {
    connect(): Promise<void>
    disconnect(): Promise<void>
    refreshMetadata(): Promise<void>
    findControllerBroker(): Promise<{ connectionPool: { send(exchange: object): Promise<unknown> } }>
  }
  await cluster.connect()
  try {
    await cluster.refreshMetadata()
    const broker = await cluster.findControllerBroker()
    const encode = async () =>
      new Encoder()
        .writeArray([
          new Encoder()
            .writeArray([new Encoder().writeString('client-id').writeString(clientId)])
            .writeArray([
              new Encoder().writeString('consumer_byte_rate').writeDouble(bytesPerSecond).writeBoolean(false),
            ]),
        ])
        .writeBoolean(false)
    const decode = async (data: Buffer) => {
      const decoder = new Decoder(data)
      decoder.readInt32()
      return decoder.readArray((each: { readInt16(): number }) => each.readInt16())
    }
    const codes = await broker.connectionPool.send({
      request: { apiKey: 49, apiVersion: 0, apiName: 'AlterClientQuotas', encode },
      response: { decode, parse: async (decoded: unknown) => decoded },
    })
    assert.deepEqual(codes, [0])
  } finally {
    await cluster.disconnect()
  }
}

it('Kafka: a client that is over its quota waits, and gets everything', options, async () => {
  const clientId = `slow-${randomUUID()}`
  await setQuota(clientId, 110_000)
  const run = testRun(brokers, { clientId, partitions: { deadletters: 2 } })
  const log = await run.open()
  try {
    await log.append(Array.from({ length: 12 }, (_, i) => letterOutput(`k${i}`, 50_000)))
    const credits = { records: 100, bytes: 1 << 24 }
    const whole = () => all(log.read('deadletters', { group: 'g', credits, until: 'end' }))
    assert.equal((await gather(log.scan('deadletters'))).length, 12)
    assert.equal((await whole()).length, 12)
    // By now the quota, which is meant for ten seconds, is used up.
    assert.equal(await log.note('none'), undefined)
    const [last] = await gather(log.scan('deadletters', { partition: 1, limit: 1 }))
    assert.equal(last!.partition, 1)
  } finally {
    await log.close()
    await run.remove()
  }
})

/**
 * Kafka's produce request, sent past kafkajs's encoder: its records go into one piece of memory, once (see
 * `record-batch.ts`). Everything around it, sequences, transactions, retries and the answer, is kafkajs's.
 */
import { createRequire } from 'node:module'
import { CompressionTypes } from 'kafkajs'
import type { Broker, Cluster } from './client.ts'
import { Batch, type BatchRecord } from './record-batch.ts'

const PRODUCE = 0

/** As kafkajs's producer asks a broker. */
interface ProduceWork {
  readonly acks: number
  readonly timeout?: number
  readonly compression?: CompressionTypes
  readonly transactionalId?: string
  readonly producerId: string | number
  readonly producerEpoch: number
  readonly topicData: readonly {
    readonly topic: string
    readonly partitions: readonly {
      readonly partition: number
      readonly firstSequence: number
      readonly messages: readonly BatchRecord[]
    }[]
  }[]
}

interface Protocol {
  readonly request: { readonly apiVersion: number }
  readonly response: { decode(raw: Buffer): Promise<Decoded>; parse(decoded: Decoded): Promise<unknown> }
}

interface Decoded {
  readonly clientSideThrottleTime?: number
}

interface Definition {
  readonly versions: readonly string[]
  protocol(of: { version: number }): (work: ProduceWork) => Protocol
}

interface Answer {
  readonly payload: Buffer
}

interface Connection {
  readonly clientId: string
  readonly socket: { write(bytes: Buffer): unknown }
  readonly requestQueue: {
    push(request: object): void
    maybeThrottle(milliseconds: number | undefined): void
  }
  authenticate(): Promise<void>
  isAuthenticated(): boolean
  failIfNotConnected(): void
  nextCorrelationId(): number
}

interface ProducingBroker {
  readonly connectionPool: { getConnection(index: 0): Promise<Connection> }
  lookupRequest(key: number, definition: Definition): (work: ProduceWork) => Protocol
  produce(work: ProduceWork): Promise<unknown>
  disconnect(): Promise<void>
}

const definition = createRequire(import.meta.url)('kafkajs/src/protocol/requests/produce') as Definition

/** Makes what kafkajs's producer of this cluster writes go this way; what is compressed goes kafkajs's. */
export function produceInOneCopy(cluster: Cluster): void {
  const find = cluster.findBroker.bind(cluster)
  const changed = new WeakSet<Broker>()
  cluster.findBroker = async node => {
    const broker = await find(node)
    if (!changed.has(broker)) {
      changed.add(broker)
      change(broker as unknown as ProducingBroker)
    }
    return broker
  }
}

function change(broker: ProducingBroker): void {
  const produce = broker.produce.bind(broker)
  broker.produce = work => {
    const { compression = CompressionTypes.None, acks } = work
    const own = compression === CompressionTypes.None && acks !== 0
    return own ? send(broker, work) : produce(work)
  }
}

async function send(broker: ProducingBroker, work: ProduceWork): Promise<unknown> {
  const { request, response } = broker.lookupRequest(PRODUCE, definition)(work)
  const connection = await broker.connectionPool.getConnection(0)
  try {
    if (!connection.isAuthenticated()) await connection.authenticate()
    connection.failIfNotConnected()
    const { apiVersion } = request
    const { requestQueue } = connection
    const correlationId = connection.nextCorrelationId()
    const bytes = encode(work, apiVersion, correlationId, connection.clientId)
    const { payload } = await new Promise<Answer>((resolve, reject) => {
      const entry = { apiKey: PRODUCE, apiName: 'Produce', apiVersion, correlationId, resolve, reject }
      const sendRequest = () => void connection.socket.write(bytes)
      requestQueue.push({ entry, expectResponse: true, requestTimeout: null, sendRequest })
    })
    const decoded = await response.decode(payload)
    requestQueue.maybeThrottle(decoded.clientSideThrottleTime)
    return await response.parse(decoded)
  } catch (error) {
    if ((error as Error).name === 'KafkaJSConnectionClosedError') await broker.disconnect()
    throw error
  }
}

/**
 *     size i32, api key i16, version i16, correlation id i32, client id string,
 *     transactional id string or null, acks i16, timeout i32, topics: [name string, partitions: [i32, batch]]
 */
function encode(work: ProduceWork, version: number, correlationId: number, clientId: string): Buffer {
  const { transactionalId, acks, timeout = 30_000, topicData, producerEpoch } = work
  const topics = topicData.map(({ topic, partitions }) => ({
    topic,
    partitions: partitions.map(each => ({ ...each, batch: new Batch(each.messages) })),
  }))
  let size = 4 + 2 + 2 + 4 + stringSize(clientId) + stringSize(transactionalId) + 2 + 4 + 4
  for (const { topic, partitions } of topics) {
    size += stringSize(topic) + 4
    for (const { batch } of partitions) size += 4 + 4 + batch.size
  }
  const target = Buffer.allocUnsafeSlow(size)
  let at = target.writeInt32BE(size - 4)
  at = target.writeInt16BE(PRODUCE, at)
  at = target.writeInt16BE(version, at)
  at = target.writeInt32BE(correlationId, at)
  at = writeString(target, at, clientId)
  at = writeString(target, at, transactionalId)
  at = target.writeInt16BE(acks, at)
  at = target.writeInt32BE(timeout, at)
  at = target.writeInt32BE(topics.length, at)
  const producerId = BigInt(work.producerId)
  const transactional = transactionalId !== undefined
  const timestamp = Date.now()
  for (const { topic, partitions } of topics) {
    at = writeString(target, at, topic)
    at = target.writeInt32BE(partitions.length, at)
    for (const { partition, firstSequence, batch } of partitions) {
      at = target.writeInt32BE(partition, at)
      at = target.writeInt32BE(batch.size, at)
      batch.write(target, at, { producerId, producerEpoch, firstSequence, transactional, timestamp })
      at += batch.size
    }
  }
  return target
}

function stringSize(text: string | null | undefined): number {
  return 2 + (text ? Buffer.byteLength(text) : 0)
}

function writeString(target: Buffer, at: number, text: string | null | undefined): number {
  if (text === null || text === undefined) return target.writeInt16BE(-1, at)
  const start = at + 2
  const length = target.write(text, start)
  target.writeInt16BE(length, at)
  return start + length
}

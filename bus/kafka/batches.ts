/** Encoded records, cut into requests that the brokers take. */
import type { CompressionTypes, Message, ProducerBatch, RecordMetadata, TopicMessages } from 'kafkajs'
import type { Topic } from '../../schemas/types.ts'
import type { Place } from '../port.ts'

/** A record encoded for the log, before it has a place. */
export interface Prepared {
  readonly topic: Topic
  /** The topic's name in the cluster. */
  readonly name: string
  readonly partition: number
  readonly bytes: number
  readonly message: Message
}

export interface BatchLimits {
  /** What Kafka takes of one partition in one request (`max.message.bytes` bounds the batch, not the record). */
  readonly partitionBytes: number
  readonly requestBytes: number
}

/** kafkajs groups the messages of a request by partition in quadratic time. */
const REQUEST_RECORDS = 500
/** Around each record in a batch: lengths, offset, timestamp, header; and once around the batch. */
export const OVERHEAD = 200

/** Sends records request by request, in the given order, and tells their places. */
export async function sendAll(
  send: (batch: ProducerBatch) => Promise<RecordMetadata[]>,
  prepared: readonly Prepared[],
  limits: BatchLimits,
  compression: CompressionTypes,
): Promise<Place[]> {
  const places: Place[] = []
  for (const batch of cut(prepared, limits)) {
    const answers = await send({ acks: -1, compression, topicMessages: grouped(batch) })
    const next = new Map(
      answers.map(answer => [`${answer.topicName}/${answer.partition}`, Number(answer.baseOffset)]),
    )
    for (const { topic, name, partition } of batch) {
      const key = `${name}/${partition}`
      const offset = next.get(key)!
      next.set(key, offset + 1)
      places.push({ topic, partition, offset })
    }
  }
  return places
}

function* cut(prepared: readonly Prepared[], limits: BatchLimits): Generator<Prepared[]> {
  let batch: Prepared[] = []
  let total = 0
  let byPartition = new Map<string, number>()
  for (const record of prepared) {
    const key = `${record.name}/${record.partition}`
    const inPartition = (byPartition.get(key) ?? OVERHEAD) + record.bytes
    const full =
      batch.length >= REQUEST_RECORDS ||
      total + record.bytes > limits.requestBytes ||
      inPartition > limits.partitionBytes
    if (full && batch.length > 0) {
      yield batch
      batch = []
      total = 0
      byPartition = new Map()
    }
    batch.push(record)
    total += record.bytes
    byPartition.set(key, (byPartition.get(key) ?? OVERHEAD) + record.bytes)
  }
  if (batch.length > 0) yield batch
}

function grouped(batch: readonly Prepared[]): TopicMessages[] {
  const topics = new Map<string, Message[]>()
  for (const { name, message } of batch) {
    const messages = topics.get(name)
    if (messages) messages.push(message)
    else topics.set(name, [message])
  }
  return [...topics].map(([topic, messages]) => ({ topic, messages }))
}

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

/** Whether all of them go to one partition in one request: the brokers take them as a whole or not at all. */
export function isWhole(prepared: readonly Prepared[], limits: BatchLimits): boolean {
  const [first] = prepared
  const together = prepared.every(
    ({ name, partition }) => name === first!.name && partition === first!.partition,
  )
  return together && new Filling(limits).take(prepared)
}

/** A request as it is filled. */
export class Filling {
  readonly #limits: BatchLimits
  readonly #byPartition = new Map<string, number>()
  #records = 0
  #bytes = 0

  constructor(limits: BatchLimits) {
    this.#limits = limits
  }

  /** Takes all of them, or none where they do not fit in; the first one always does. */
  take(more: readonly Prepared[]): boolean {
    const added = new Map<string, number>()
    let bytes = 0
    for (const record of more) {
      const key = `${record.name}/${record.partition}`
      added.set(key, (added.get(key) ?? this.#byPartition.get(key) ?? OVERHEAD) + record.bytes)
      bytes += record.bytes
    }
    const { requestBytes, partitionBytes } = this.#limits
    const fits =
      this.#records + more.length <= REQUEST_RECORDS &&
      this.#bytes + bytes <= requestBytes &&
      [...added.values()].every(size => size <= partitionBytes)
    if (!fits && !(this.#records === 0 && more.length === 1)) return false
    for (const [key, size] of added) this.#byPartition.set(key, size)
    this.#records += more.length
    this.#bytes += bytes
    return true
  }
}

function* cut(prepared: readonly Prepared[], limits: BatchLimits): Generator<Prepared[]> {
  let batch: Prepared[] = []
  let filling = new Filling(limits)
  for (const record of prepared) {
    if (!filling.take([record])) {
      yield batch
      batch = []
      filling = new Filling(limits)
      filling.take([record])
    }
    batch.push(record)
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

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

/** A request of small records is not to hold up the event loop for long. */
const REQUEST_RECORDS = 2_000
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
    const next = new PartitionMap()
    for (const { topicName, partition, baseOffset } of answers) {
      next.set({ name: topicName, partition }, Number(baseOffset))
    }
    for (const record of batch) {
      const offset = next.get(record)!
      next.set(record, offset + 1)
      places.push({ topic: record.topic, partition: record.partition, offset })
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

/** A number a partition, without a name to be made for each record. */
class PartitionMap {
  readonly #topics = new Map<string, number[]>()

  get({ name, partition }: Pick<Prepared, 'name' | 'partition'>): number | undefined {
    return this.#topics.get(name)?.[partition]
  }

  set({ name, partition }: Pick<Prepared, 'name' | 'partition'>, value: number): void {
    const known = this.#topics.get(name) ?? []
    known[partition] = value
    this.#topics.set(name, known)
  }
}

/** A request as it is filled. */
export class Filling {
  readonly #limits: BatchLimits
  readonly #byPartition = new PartitionMap()
  #records = 0
  #bytes = 0

  constructor(limits: BatchLimits) {
    this.#limits = limits
  }

  /** Takes all of them, or none where they do not fit in; the first record always does. */
  take(more: readonly Prepared[]): boolean {
    for (const [i, record] of more.entries()) {
      if (this.takeOne(record)) continue
      for (const taken of more.slice(0, i)) this.#giveBack(taken)
      return false
    }
    return true
  }

  takeOne(record: Prepared): boolean {
    const inPartition = (this.#byPartition.get(record) ?? OVERHEAD) + record.bytes
    const { requestBytes, partitionBytes } = this.#limits
    const fits =
      this.#records < REQUEST_RECORDS &&
      this.#bytes + record.bytes <= requestBytes &&
      inPartition <= partitionBytes
    if (!fits && this.#records > 0) return false
    this.#byPartition.set(record, inPartition)
    this.#records++
    this.#bytes += record.bytes
    return true
  }

  #giveBack(record: Prepared): void {
    this.#byPartition.set(record, this.#byPartition.get(record)! - record.bytes)
    this.#records--
    this.#bytes -= record.bytes
  }
}

function* cut(prepared: readonly Prepared[], limits: BatchLimits): Generator<Prepared[]> {
  let batch: Prepared[] = []
  let filling = new Filling(limits)
  for (const record of prepared) {
    if (!filling.takeOne(record)) {
      yield batch
      batch = []
      filling = new Filling(limits)
      filling.takeOne(record)
    }
    batch.push(record)
  }
  if (batch.length > 0) yield batch
}

function grouped(batch: readonly Prepared[]): TopicMessages[] {
  const topics = new Map<string, Message[][]>()
  for (const { name, partition, message } of batch) {
    const partitions = topics.get(name) ?? []
    topics.set(name, partitions)
    const messages = partitions[partition]
    if (messages) messages.push(message)
    else partitions[partition] = [message]
  }
  return [...topics].map(([topic, partitions]) => ({ topic, messages: inPartitions(partitions) }))
}

/**
 * kafkajs groups messages by partition with `reduce`, and copies what it has with each of them: quadratic. So they
 * come with a `reduce` that knows the groups.
 */
function inPartitions(partitions: readonly Message[][]): Message[] {
  const groups = Object.fromEntries(Object.entries(partitions))
  return Object.assign(partitions.flat(), { reduce: () => groups })
}

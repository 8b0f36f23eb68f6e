/**
 * kafkajs alone: a consumer hands each batch to a producer, which writes the bytes as they are. Nothing is decoded
 * or encoded. Transactional: a producer for each partition, one transaction a batch, offsets within it. Plain: one
 * idempotent producer, and offsets are committed after the batch, so that a crash writes it twice.
 */
import { CompressionTypes, type EachBatchPayload, Kafka, logLevel, type Producer, type Sender } from 'kafkajs'
import { type Sample, startClock } from '../rounds.ts'
import { type BenchRun, PARTITIONS } from './cluster.ts'
import type { Load } from './loads.ts'

/** kafkajs groups the messages of a request by partition in quadratic time. */
const REQUEST_RECORDS = 500
const REQUEST_BYTES = 7 << 20

export interface BareOptions {
  readonly transactional: boolean
  readonly group: string
}

/** From the first batch to the last commit; as many in flight as the stage has. */
export async function bareLoop(run: BenchRun, load: Load, options: BareOptions): Promise<Sample> {
  const { brokers, names } = run
  const { transactional } = options
  const groupId = names.group(options.group)
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING })
  const maxBytesPerPartition = Math.ceil((load.inFlight * (load.bytes + 100)) / PARTITIONS)
  const consumer = kafka.consumer({
    groupId,
    maxWaitTimeInMs: 250,
    maxBytesPerPartition,
    maxBytes: maxBytesPerPartition * PARTITIONS,
  })
  const producers = await connectProducers(kafka, groupId, transactional)
  await consumer.connect()
  await consumer.subscribe({ topic: names.topic(load.from), fromBeginning: true })
  let clock: ReturnType<typeof startClock> | undefined
  let sample: Sample | undefined
  let count = 0
  const eachBatch = async (payload: EachBatchPayload) => {
    clock ??= startClock()
    const { partition, messages } = payload.batch
    const producer = producers[partition % producers.length]!
    if (transactional) await inTransaction(producer, groupId, load, payload, names.topic(load.to))
    else {
      await send(producer, payload, load, names.topic(load.to))
      for (const { offset } of messages) payload.resolveOffset(offset)
      await payload.commitOffsetsIfNecessary({ topics: [offsetsOf(payload)] })
    }
    count += messages.length
    if (count >= load.records) sample ??= clock()
  }
  try {
    await new Promise<void>((resolve, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
      consumer.on(consumer.events.END_BATCH_PROCESS, () => {
        if (sample) resolve()
      })
      const autoCommit = false
      consumer.run({ autoCommit, partitionsConsumedConcurrently: PARTITIONS, eachBatch }).catch(reject)
    })
  } finally {
    await Promise.all([consumer.disconnect(), ...producers.map(producer => producer.disconnect())])
  }
  if (count !== load.records) throw new Error(`kafkajs saw ${count} of ${load.records} records`)
  return sample!
}

async function connectProducers(kafka: Kafka, groupId: string, transactional: boolean): Promise<Producer[]> {
  const producers = Array.from({ length: transactional ? PARTITIONS : 1 }, (_, i) =>
    kafka.producer({
      idempotent: true,
      ...(transactional ? { transactionalId: `${groupId}.${i}`, maxInFlightRequests: 1 } : {}),
    }),
  )
  await Promise.all(producers.map(producer => producer.connect()))
  return producers
}

async function inTransaction(
  producer: Producer,
  groupId: string,
  load: Load,
  payload: EachBatchPayload,
  to: string,
): Promise<void> {
  const transaction = await producer.transaction()
  await send(transaction, payload, load, to)
  await transaction.sendOffsets({ consumerGroupId: groupId, topics: [offsetsOf(payload)] })
  await transaction.commit()
  for (const { offset } of payload.batch.messages) payload.resolveOffset(offset)
}

async function send(
  producer: Sender,
  { batch }: EachBatchPayload,
  { bytes }: Load,
  topic: string,
): Promise<void> {
  const { partition, messages } = batch
  const step = Math.min(REQUEST_RECORDS, Math.max(1, Math.floor(REQUEST_BYTES / bytes)))
  for (let i = 0; i < messages.length; i += step) {
    const part = messages.slice(i, i + step).map(({ key, value }) => ({ key, value, partition }))
    await producer.send({ topic, acks: -1, compression: CompressionTypes.None, messages: part })
  }
}

function offsetsOf({ batch }: EachBatchPayload) {
  const offset = String(Number(batch.lastOffset()) + 1)
  return { topic: batch.topic, partitions: [{ partition: batch.partition, offset }] }
}

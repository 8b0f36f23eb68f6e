/**
 * The log on Kafka against bare kafkajs: a stage's loop (read → decode → operator → encode → commit of outputs and
 * positions in a transaction) against a kafkajs consumer that sends each batch on, bytes as they are, and commits
 * its offsets; and a slow stage behind a fast one, whose memory must stay flat.
 *
 *     node --import tsx bench/kafka.ts [--brokers HOST:PORT] [--json] [--rounds N] [--load NAME]
 *         [--only loop|backpressure]
 *
 * Without `--brokers` it looks for a broker as the tests do.
 */
import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { CompressionTypes, Kafka, logLevel, Partitioners } from 'kafkajs'
import { concatMap, lastValueFrom, map } from 'rxjs'
import { openFlow } from '../bus/flow.ts'
import { openKafkaLog } from '../bus/kafka/log.ts'
import { Names } from '../bus/kafka/names.ts'
import { type Log, type LogRecord, type Output, output } from '../bus/port.ts'
import { findKafka } from '../test/helpers/kafka-broker.ts'

const PREFIX = 'bench'
const PARTITIONS = 4

interface Load {
  readonly name: string
  readonly bytes: number
  readonly records: number
  readonly inFlight: number
}

const LOADS: readonly Load[] = [
  { name: '1 KB', bytes: 1000, records: 10_000, inFlight: 4_000 },
  { name: '1 MiB', bytes: 1 << 20, records: 128, inFlight: 32 },
]

/** Of the slow stage. */
const SLOW = { records: 2_000, bytes: 1 << 20, credits: { records: 16, bytes: 16 << 20 } }

const { values: flags } = parseArgs({
  options: {
    brokers: { type: 'string' },
    json: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '3' },
    load: { type: 'string', default: '' },
    only: { type: 'string' },
  },
})
if (flags.brokers !== undefined) process.env.KAFKA_BROKERS = flags.brokers
const found = await findKafka()
if (!found.brokers) throw new Error(found.skip)
const { brokers } = found

function outputsOf(bytes: number, from: number, to: number): Output[] {
  const payload = new Uint8Array(bytes).map((_, i) => i)
  return Array.from({ length: to - from }, (_, i) => {
    const place = { stage: 'bench', topic: 'slices', partition: 0, offset: from + i, key: `key ${from + i}` }
    return output('deadletters', place.key, { ...place, code: 'X', message: '', attempts: 1, payload })
  })
}

async function fill(log: Log, bytes: number, records: number): Promise<void> {
  const step = Math.max(1, Math.floor((8 << 20) / bytes))
  for (let i = 0; i < records; i += step) await log.append(outputsOf(bytes, i, Math.min(records, i + step)))
}

async function withLog<T>(work: (log: Log, names: Names) => Promise<T>): Promise<T> {
  const run = randomUUID().slice(0, 8)
  const names = new Names(PREFIX, run)
  const partitions = { deadletters: PARTITIONS, policies: PARTITIONS }
  const log = await openKafkaLog({ brokers, run, prefix: PREFIX, partitions })
  try {
    return await work(log, names)
  } finally {
    await log.close()
    const admin = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    await admin.deleteTopics({
      topics: (await admin.listTopics()).filter(topic =>
        topic.startsWith(names.topic('slices').slice(0, -6)),
      ),
    })
    await admin.disconnect()
  }
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return (performance.now() - start) / 1000
}

/** Reads what is there and writes it again, behind it, committed together with the positions. */
async function stageLoop(log: Log, { bytes, inFlight }: Load): Promise<void> {
  const credits = { records: inFlight, bytes: inFlight * (bytes + 200) }
  const flow = openFlow(log, 'deadletters', { stage: 'bench', group: 'loop', credits, until: 'end' })
  const again = map((record: LogRecord<'deadletters'>) => ({
    consumed: [record],
    outputs: [output('deadletters', record.key, record.value)],
  }))
  await lastValueFrom(flow.records$.pipe(again, flow.commit()))
}

/** The same with kafkajs alone: nothing is decoded, and outputs and positions are not atomic. */
async function bareLoop(names: Names, { records }: Load): Promise<void> {
  const topic = names.topic('deadletters')
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING })
  const consumer = kafka.consumer({
    groupId: names.group('bare'),
    maxWaitTimeInMs: 250,
    maxBytesPerPartition: 8 << 20,
  })
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, idempotent: true })
  await Promise.all([consumer.connect(), producer.connect()])
  await consumer.subscribe({ topic, fromBeginning: true })
  let count = 0
  await new Promise<void>((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    consumer
      .run({
        partitionsConsumedConcurrently: PARTITIONS,
        eachBatch: async ({ batch }) => {
          const messages = batch.messages.slice(0, Math.max(0, records - count))
          count += messages.length
          // As many at once as the topic takes, and not so many that kafkajs is slow to group them.
          const step = Math.min(500, Math.max(1, Math.floor((7 << 20) / (messages[0]?.value?.length ?? 1))))
          for (let i = 0; i < messages.length; i += step) {
            const part = messages
              .slice(i, i + step)
              .map(({ key, value }) => ({ key, value, partition: batch.partition }))
            await producer.send({ topic, acks: -1, compression: CompressionTypes.None, messages: part })
          }
          if (count >= records) resolve()
        },
      })
      .catch(reject)
  })
  await Promise.all([consumer.disconnect(), producer.disconnect()])
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!
}

async function loops(load: Load, rounds: number) {
  const times: { log: number; bare: number }[] = []
  for (let i = 0; i <= rounds; i++) {
    times.push(
      await withLog(async (log, names) => {
        await fill(log, load.bytes, load.records)
        const ours = () => seconds(() => stageLoop(log, load))
        const bare = () => seconds(() => bareLoop(names, load))
        // Who comes first reads what the other one then finds in the page cache: take turns.
        if (i % 2 === 0) return { log: await ours(), bare: await bare() }
        const first = await bare()
        // What the bare loop wrote is behind the records and would be read too.
        return { log: (await ours()) / 2, bare: first }
      }),
    )
  }
  // The first one warms up.
  times.shift()
  return {
    record: load.name,
    recordsPerSecond: load.records / median(times.map(({ log }) => log)),
    bareRecordsPerSecond: load.records / median(times.map(({ bare }) => bare)),
    ratio: median(times.map(({ log, bare }) => bare / log)),
  }
}

/** A stage ten times slower than what feeds it. */
async function backpressure() {
  return withLog(async log => {
    const { records, bytes, credits } = SLOW
    const memory: number[] = []
    let inFlight = 0
    let most = 0
    let done = 0
    const feed = await seconds(() => fill(log, bytes, records))
    const pause = (1000 * 10 * feed) / records
    const flow = openFlow(log, 'deadletters', { stage: 'bench', group: 'slow', credits, until: 'end' })
    const counted = map((record: LogRecord<'deadletters'>) => {
      most = Math.max(most, ++inFlight)
      return record
    })
    const slow = concatMap(async (record: LogRecord<'deadletters'>) => {
      await new Promise(resolve => setTimeout(resolve, Math.min(pause, 60)))
      return { consumed: [record], outputs: [] }
    })
    await flow.records$.pipe(counted, slow, flow.commit()).forEach(({ finished }) => {
      inFlight -= finished.length
      done += finished.length
      if (done % 100 < finished.length) memory.push(Math.round(process.memoryUsage().rss / 2 ** 20))
    })
    return { records: done, credits: credits.records, mostInFlight: most, megabytesOfMemory: memory }
  })
}

const results: object[] = []
if (flags.only !== 'backpressure')
  for (const load of LOADS) results.push(await loops(load, Number(flags.rounds)))
if (flags.only !== 'loop') results.push(await backpressure())
await found.release()
if (flags.json) console.log(JSON.stringify(results))
else for (const result of results) console.log(result)

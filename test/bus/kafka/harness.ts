import { randomUUID } from 'node:crypto'
import { Kafka, logLevel, type Transaction } from 'kafkajs'
import { Client, type RawMessage } from '../../../bus/kafka/client.ts'
import { fetchPartitions, listOffsets } from '../../../bus/kafka/fetch.ts'
import { openKafkaLog } from '../../../bus/kafka/log.ts'
import { Names } from '../../../bus/kafka/names.ts'
import type { KafkaLogOptions } from '../../../bus/kafka/options.ts'
import { partitionOf } from '../../../bus/partition.ts'
import type { LogHarness, MakeHarness } from '../conformance.ts'

/** A run of its own for one test, on a broker that others may use too. */
export function testRun(brokers: readonly string[], options: Partial<KafkaLogOptions> = {}) {
  const run = `t${randomUUID().slice(0, 8)}`
  const settings: KafkaLogOptions = { brokers, run, prefix: 'test', ...options }
  const names = new Names('test', run)
  return {
    run,
    settings,
    names,
    open: () => openKafkaLog(settings),
    remove: () => removeTopics(brokers, names),
  }
}

async function removeTopics(brokers: readonly string[], names: Names): Promise<void> {
  await withAdmin(brokers, async admin => {
    const own = names.topic('questions').slice(0, -'questions'.length)
    const topics = (await admin.listTopics()).filter(topic => topic.startsWith(own))
    await admin.deleteTopics({ topics })
  })
}

export async function withAdmin<T>(
  brokers: readonly string[],
  work: (admin: ReturnType<Kafka['admin']>) => Promise<T>,
): Promise<T> {
  const admin = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

/** Writes any bytes as a record, past the codec. */
export async function appendRaw(
  brokers: readonly string[],
  topic: string,
  partitions: number,
  key: string,
  payload: Uint8Array,
): Promise<void> {
  const producer = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).producer()
  await producer.connect()
  const message = { key, value: Buffer.from(payload), partition: partitionOf(key, partitions) }
  await producer.send({ topic, messages: [message] })
  await producer.disconnect()
}

export function makeKafkaHarness(brokers: readonly string[]): MakeHarness {
  return async ({ partitions = {} }): Promise<LogHarness> => {
    const run = testRun(brokers, { partitions })
    return {
      open: run.open,
      appendRaw: (_, topic, key, payload) =>
        appendRaw(brokers, run.names.topic(topic), partitions[topic] ?? 1, key, payload),
      remove: run.remove,
    }
  }
}

/** The committed records of a topic's first partition, repetitions and all. */
export async function committedRecords(brokers: readonly string[], topic: string): Promise<RawMessage[]> {
  const cluster = new Client({ brokers, run: 'raw' }).cluster()
  await cluster.connect()
  try {
    await cluster.addMultipleTargetTopics([topic])
    const end = (await listOffsets(cluster, topic, [0], 'stable')).get(0)!
    const found: RawMessage[] = []
    for (let cursor = 0; cursor < end; ) {
      const limits = { maxBytes: 1 << 20, maxWait: 100 }
      const { records, next } = (await fetchPartitions(cluster, topic, new Map([[0, cursor]]), limits)).get(
        0,
      )!
      found.push(...records)
      cursor = next
    }
    return found
  } finally {
    await cluster.disconnect()
  }
}

const QUIET_MS = 500

/** Resolves when no transaction was open in the topic's first partition for a while, nor anything written to it. */
export async function decided(brokers: readonly string[], topic: string): Promise<void> {
  const cluster = new Client({ brokers, run: 'raw' }).cluster()
  await cluster.connect()
  try {
    await cluster.addMultipleTargetTopics([topic])
    const end = async (kind: 'stable' | 'written') => (await listOffsets(cluster, topic, [0], kind)).get(0)!
    let [last, since] = [-1, Date.now()]
    while (Date.now() - since < QUIET_MS) {
      const [stable, written] = [await end('stable'), await end('written')]
      if (stable < written || written !== last) [last, since] = [written, Date.now()]
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  } finally {
    await cluster.disconnect()
  }
}

/** Removes the records before an offset, as retention does. */
export async function removeRecords(
  brokers: readonly string[],
  topic: string,
  before: number,
): Promise<void> {
  await withAdmin(brokers, async admin => {
    // It also makes kafkajs know the topic.
    await admin.fetchTopicOffsets(topic)
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(before) }] })
  })
}

/** Puts all members out of a group, as the brokers do with those that were not heard of for too long. */
export async function expel(brokers: readonly string[], groupId: string): Promise<void> {
  const members = await withAdmin(brokers, async admin => {
    const { groups } = await admin.describeGroups([groupId])
    return groups.flatMap(group => group.members.map(({ memberId }) => memberId))
  })
  const cluster = new Client({ brokers, run: 'expel' }).cluster()
  await cluster.connect()
  try {
    const coordinator = await cluster.findGroupCoordinator({ groupId })
    for (const memberId of members) await coordinator.leaveGroup({ groupId, memberId })
  } finally {
    await cluster.disconnect()
  }
}

/** Transactions that begin while `work` runs do as `change` says. */
export async function withTransactions<T>(
  change: (transaction: Transaction) => void,
  work: () => Promise<T>,
): Promise<T> {
  const make = Kafka.prototype.producer
  let changing = true
  Kafka.prototype.producer = function (options) {
    const producer = make.call(this, options)
    const begin = producer.transaction
    producer.transaction = async () => {
      const transaction = await begin()
      if (changing) change(transaction)
      return transaction
    }
    return producer
  }
  try {
    return await work()
  } finally {
    changing = false
    Kafka.prototype.producer = make
  }
}

/** A run of its own in the cluster, removed afterwards, however the work ended. */
import { randomUUID } from 'node:crypto'
import { Kafka, logLevel } from 'kafkajs'
import { openKafkaLog } from '../../bus/kafka/log.ts'
import { Names } from '../../bus/kafka/names.ts'
import type { Log } from '../../bus/port.ts'
import type { Topic } from '../../schemas/types.ts'

const PREFIX = 'bench'
export const PARTITIONS = 4

export interface BenchRun {
  readonly brokers: readonly string[]
  readonly run: string
  readonly names: Names
  readonly log: Log
}

export function openRun(brokers: readonly string[], run: string, topics: readonly Topic[]): Promise<Log> {
  const partitions = Object.fromEntries(topics.map(topic => [topic, PARTITIONS]))
  return openKafkaLog({ brokers, run, prefix: PREFIX, partitions })
}

export async function withRun<T>(
  brokers: readonly string[],
  topics: readonly Topic[],
  work: (run: BenchRun) => Promise<T>,
): Promise<T> {
  const run = randomUUID().slice(0, 8)
  const names = new Names(PREFIX, run)
  try {
    const log = await openRun(brokers, run, topics)
    try {
      return await work({ brokers, run, names, log })
    } finally {
      await log.close()
    }
  } finally {
    await removeTopics(brokers, names)
  }
}

async function removeTopics(brokers: readonly string[], names: Names): Promise<void> {
  const admin = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).admin()
  await admin.connect()
  try {
    const own = names.meta.slice(0, -'meta'.length)
    const topics = (await admin.listTopics()).filter(topic => topic.startsWith(own))
    await admin.deleteTopics({ topics })
  } finally {
    await admin.disconnect()
  }
}

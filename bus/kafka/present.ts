import { TOPICS, type Topic } from '../../schemas/types.ts'
import { Client } from './client.ts'
import { kafkaFault } from './faults.ts'
import { listTopics } from './list-topics.ts'
import { Names } from './names.ts'
import type { KafkaLogOptions } from './options.ts'

/** The topics of a run that are in the cluster, whatever their settings. Errors: LOG_UNAVAILABLE, CONFIG_INVALID. */
export async function presentKafkaTopics(options: KafkaLogOptions): Promise<Topic[]> {
  const names = new Names(options.prefix ?? 'grasp', options.run)
  const client = new Client(options)
  await client.firstContact()
  const admin = client.admin()
  try {
    await admin.connect()
    const there = await listTopics(admin)
    return TOPICS.filter(topic => there.has(names.topic(topic)))
  } catch (cause) {
    throw kafkaFault(client.brokers, 'read', cause)
  } finally {
    await admin.disconnect()
  }
}

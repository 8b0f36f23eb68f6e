import type { Admin } from 'kafkajs'
import { delay } from './retrying.ts'

/** A busy cluster takes its time to find leaders for new topics, and to tell all brokers of them. */
export const APPEAR_MS = 60_000

/**
 * The names of all topics in the cluster, asked again while some topic, of whatever run, has no leader yet: kafkajs then
 * takes every broker's answer for a failure, drops it, and stumbles over the null that is left.
 */
export async function listTopics(
  admin: Pick<Admin, 'listTopics'>,
  patience = APPEAR_MS,
): Promise<Set<string>> {
  const deadline = Date.now() + patience
  for (;;) {
    try {
      return new Set(await admin.listTopics())
    } catch (cause) {
      if (!(cause instanceof TypeError)) throw cause
      if (Date.now() > deadline) throw new Error('no broker says which topics there are', { cause })
    }
    await delay(200)
  }
}

import type { Cluster } from './client.ts'
import { rootOf, typeOf } from './faults.ts'

/** Errors that go by: a broker restarts, a coordinator moves, metadata is old. */
const PASSING = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  // A broker in a container has no name while it restarts.
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'KafkaJSConnectionError',
  'KafkaJSConnectionClosedError',
  'KafkaJSRequestTimeoutError',
  'KafkaJSBrokerNotFound',
  'KafkaJSMetadataNotLoaded',
  'KafkaJSGroupCoordinatorNotFound',
  'KafkaJSLockTimeout',
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_FOR_PARTITION',
  'FENCED_LEADER_EPOCH',
  'UNKNOWN_LEADER_EPOCH',
  'UNKNOWN_TOPIC_OR_PARTITION',
  'REPLICA_NOT_AVAILABLE',
  'KAFKA_STORAGE_ERROR',
  'REQUEST_TIMED_OUT',
  'NETWORK_EXCEPTION',
  'NOT_ENOUGH_REPLICAS',
  'NOT_ENOUGH_REPLICAS_AFTER_APPEND',
  'GROUP_LOAD_IN_PROGRESS',
  'COORDINATOR_LOAD_IN_PROGRESS',
  'GROUP_COORDINATOR_NOT_AVAILABLE',
  'COORDINATOR_NOT_AVAILABLE',
  'NOT_COORDINATOR_FOR_GROUP',
  'NOT_COORDINATOR',
  'NOT_CONTROLLER',
  'THROTTLING_QUOTA_EXCEEDED',
])

export function isPassing(error: unknown): boolean {
  return PASSING.has(typeOf(error)) || PASSING.has((error as Error | undefined)?.name ?? '')
}

/** How long brokers may be away before the work is given up, unless told. */
export const PATIENCE_MS = 180_000
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1_000

export interface Patience {
  /** For so long, in milliseconds. */
  readonly patience?: number
  /** Ends the waiting. */
  readonly stopped?: () => boolean
  /** Done before the next try. */
  readonly recover?: (error: unknown) => Promise<void>
}

/** Does `work`, again and again while what fails may pass. */
export async function patiently<T>(
  work: () => Promise<T>,
  { patience = PATIENCE_MS, stopped = () => false, recover }: Patience = {},
): Promise<T> {
  const deadline = Date.now() + patience
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    try {
      return await work()
    } catch (error) {
      if (!isPassing(error) || stopped() || Date.now() > deadline) throw error
      await delay(pause)
      await recover?.(error)
    }
  }
}

/** The same, with a cluster that looks where things are now before each further try. */
export function retrying<T>(cluster: Cluster, work: () => Promise<T>, patience: Patience = {}): Promise<T> {
  const recover = (error: unknown) => lookAgain(cluster, error)
  return patiently(work, { patience: cluster.patience ?? PATIENCE_MS, ...patience, recover })
}

/** Makes kafkajs forget a connection that broke, and look where things are now. */
async function lookAgain(cluster: Cluster, error: unknown): Promise<void> {
  const { host, port } = rootOf(error) as { host?: string; port?: number }
  if (host !== undefined) cluster.removeBroker({ host, port })
  try {
    await cluster.connect()
    await cluster.refreshMetadata()
  } catch (cause) {
    if (!isPassing(cause)) throw cause
  }
}

export function delay(milliseconds: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, milliseconds))
}

/** Waits for `work`, but no longer than so many milliseconds. */
export async function within(milliseconds: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>(resolve => {
    timer = setTimeout(resolve, milliseconds)
  })
  await Promise.race([work, limit]).finally(() => clearTimeout(timer))
}

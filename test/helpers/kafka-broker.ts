/**
 * A real Kafka for tests: KAFKA_BROKERS when set, else a container when an engine answers, else Apache Kafka
 * from Maven on Java 17, shared by all test files that run at the time. Where none of the three is possible,
 * tests are skipped with the reason.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { unlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { lacksJava } from './kafka-jars.ts'

export interface KafkaBroker {
  readonly brokers: readonly string[]
  release(): Promise<void>
}

export interface KafkaSource {
  readonly brokers?: undefined
  /** Why there is none, and what to do. */
  readonly skip: string
}

const SOCKET = join(tmpdir(), `grasp-kafka-${userInfo().uid}.sock`)

/** A broker, or why there is none. Says on standard error which one it is. */
export async function findKafka(): Promise<KafkaBroker | KafkaSource> {
  const named = process.env.KAFKA_BROKERS
  if (named) return say(`KAFKA_BROKERS=${named}`, { brokers: named.split(','), release: async () => {} })
  if (await containerEngine()) {
    const { startKafkaContainer } = await import('./kafka-container.ts')
    return say('a container', await startKafkaContainer())
  }
  const lacking = await lacksJava()
  if (lacking !== undefined) return { skip: skipReason(lacking) }
  return say('Apache Kafka from Maven', await shared())
}

/** Why tests that start and kill brokers of their own cannot run; undefined when they can. */
export async function lacksOwnKafka(): Promise<string | undefined> {
  const lacking = await lacksJava()
  return lacking === undefined ? undefined : `needs Java 17 and Maven to run brokers of its own: ${lacking}`
}

function skipReason(lacking: string): string {
  return (
    'no Kafka to test with: set KAFKA_BROKERS=host:port, or run a container engine, ' +
    `or install Java 17 and Maven (${lacking})`
  )
}

function say(what: string, broker: KafkaBroker): KafkaBroker {
  process.stderr.write(`Kafka for tests: ${what} (${broker.brokers.join(', ')})\n`)
  return broker
}

async function containerEngine(): Promise<boolean> {
  const info = promisify(execFile)('docker', ['info', '--format', '{{.ServerVersion}}'], { timeout: 5_000 })
  return info.then(
    ({ stdout }) => /^\d/.test(stdout.trim()),
    () => false,
  )
}

/** The keeper's broker; the keeper is started by whoever comes first. */
async function shared(): Promise<KafkaBroker> {
  let socket = await tryConnect()
  if (!socket) {
    const keeper = fileURLToPath(new URL('./kafka-broker-keeper.ts', import.meta.url))
    spawn(process.execPath, ['--import', 'tsx', keeper, SOCKET], { detached: true, stdio: 'ignore' }).unref()
    for (let attempt = 0; !socket; attempt++) {
      if (attempt > 200) throw new Error('the keeper of the Kafka broker did not start')
      await new Promise(resolve => setTimeout(resolve, 100))
      socket = await tryConnect()
    }
  }
  const [line] = (await once(createInterface(socket), 'line')) as [string]
  const { brokers, error } = JSON.parse(line) as { brokers?: string[]; error?: string }
  if (!brokers) throw new Error(error)
  // The connection must not keep this process alive; its end tells the keeper.
  socket.unref()
  return { brokers, release: async () => void socket.destroy() }
}

async function tryConnect(): Promise<Socket | undefined> {
  const socket = connect(SOCKET)
  try {
    await once(socket, 'connect')
    return socket
  } catch (error) {
    // The socket of a keeper that was killed.
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') unlinkSync(SOCKET)
    return undefined
  }
}

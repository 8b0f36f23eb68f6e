/** One Apache Kafka broker as a process of this machine, on loopback, with its data in a temporary folder. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Kafka, logLevel } from 'kafkajs'
import { kafkaJars } from './kafka-jars.ts'

const run = promisify(execFile)

const LOG4J = `Configuration:
  status: WARN
  Appenders:
    Console:
      name: STDOUT
      PatternLayout: { pattern: "%d %p %m (%c)%n%throwable" }
  Loggers:
    Root:
      level: WARN
      AppenderRef: [{ ref: STDOUT }]
`

export interface KafkaProcessOptions {
  /** Further lines of server.properties, by name. */
  readonly settings?: Readonly<Record<string, string>>
  /** The client listener's security protocol; PLAINTEXT unless told. */
  readonly protocol?: 'PLAINTEXT' | 'SSL' | 'SASL_PLAINTEXT' | 'SASL_SSL'
  /** Further listeners for clients: name (in capitals) → security protocol. */
  readonly listeners?: Readonly<Record<string, 'SSL' | 'SASL_PLAINTEXT' | 'SASL_SSL'>>
  /** Further arguments of the storage tool (SCRAM users). */
  readonly format?: readonly string[]
}

export class KafkaProcess {
  readonly brokers: readonly string[]
  /** Of the further listeners, by name. */
  readonly addresses: Readonly<Record<string, string>>
  readonly #folder: string
  readonly #jars: string
  readonly #protocol: string
  #child: ChildProcess | undefined

  private constructor(
    folder: string,
    jars: string,
    port: number,
    protocol: string,
    addresses: Readonly<Record<string, string>>,
  ) {
    this.addresses = addresses
    this.#folder = folder
    this.#jars = jars
    this.#protocol = protocol
    this.brokers = [`127.0.0.1:${port}`]
  }

  static async create(options: KafkaProcessOptions = {}): Promise<KafkaProcess> {
    const { settings = {}, protocol = 'PLAINTEXT', listeners = {}, format = [] } = options
    const jars = await kafkaJars()
    const folder = await mkdtemp(join(tmpdir(), 'grasp-kafka-'))
    const [port, controller, ...more] = await freePorts(2 + Object.keys(listeners).length)
    const addresses = Object.fromEntries(
      Object.keys(listeners).map((name, i) => [name, `127.0.0.1:${more[i]}`]),
    )
    const properties = { ...serverSettings(folder, port!, controller!, protocol), ...settings }
    for (const [name, address] of Object.entries(addresses)) {
      properties.listeners += `,${name}://${address}`
      properties['advertised.listeners'] += `,${name}://${address}`
      properties['listener.security.protocol.map'] += `,${name}:${listeners[name]}`
    }
    const lines = Object.entries(properties).map(([name, value]) => `${name}=${value}\n`)
    await writeFile(join(folder, 'server.properties'), lines.join(''))
    await writeFile(join(folder, 'log4j2.yaml'), LOG4J)
    const tool = ['-cp', `${jars}/*`, 'kafka.tools.StorageTool']
    const { stdout } = await run('java', [...tool, 'random-uuid'], { env: quiet(folder) })
    const id = stdout.trim().split('\n').at(-1)!
    const formatting = ['format', '-t', id, '-c', join(folder, 'server.properties'), ...format]
    await run('java', [...tool, ...formatting], { env: quiet(folder) })
    return new KafkaProcess(folder, jars, port!, protocol, addresses)
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Starts it, again after it was killed, and resolves when it answers. */
  async start(): Promise<void> {
    const log = createWriteStream(join(this.#folder, 'broker.log'), { flags: 'a' })
    const memory = ['-Xms256m', '-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']
    const logging = `-Dlog4j2.configurationFile=${join(this.#folder, 'log4j2.yaml')}`
    const main = ['-cp', `${this.#jars}/*`, 'kafka.Kafka', join(this.#folder, 'server.properties')]
    const child = spawn('java', [...memory, logging, ...main], { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    // It must not outlive a test that fails.
    const kill = () => child.kill('SIGKILL')
    process.on('exit', kill)
    child.once('exit', () => process.off('exit', kill))
    child.stdout!.pipe(log)
    child.stderr!.pipe(log)
    for (let attempt = 0; !(await this.#answers()); attempt++) {
      if (child.exitCode === null && attempt < 1200) continue
      const said = await readFile(join(this.#folder, 'broker.log'), 'utf8')
      throw new Error(`the Kafka broker did not start: ${said.slice(-2000)}`)
    }
  }

  /** As a power cut would. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM')
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), 15_000)
    await exit
    clearTimeout(timer)
  }

  async #answers(): Promise<boolean> {
    const secure = this.#protocol !== 'PLAINTEXT'
    await new Promise(resolve => setTimeout(resolve, 100))
    // With TLS or SASL only the port is asked, since only the test knows how to log in.
    if (secure) return isOpen(this.brokers[0]!)
    const kafka = new Kafka({
      brokers: [...this.brokers],
      logLevel: logLevel.NOTHING,
      retry: { retries: 0 },
    })
    const admin = kafka.admin()
    try {
      await admin.connect()
      return (await admin.describeCluster()).brokers.length > 0
    } catch {
      return false
    } finally {
      await admin.disconnect()
    }
  }
}

function serverSettings(
  folder: string,
  port: number,
  controller: number,
  protocol: string,
): Record<string, string> {
  return {
    'process.roles': 'broker,controller',
    'node.id': '1',
    'controller.quorum.voters': `1@127.0.0.1:${controller}`,
    'controller.listener.names': 'CONTROLLER',
    listeners: `CLIENTS://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controller}`,
    'advertised.listeners': `CLIENTS://127.0.0.1:${port}`,
    'listener.security.protocol.map': `CLIENTS:${protocol},CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT`,
    'inter.broker.listener.name': 'CLIENTS',
    'log.dirs': join(folder, 'data'),
    // One node holds everything.
    'offsets.topic.replication.factor': '1',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
    'share.coordinator.state.topic.replication.factor': '1',
    'share.coordinator.state.topic.min.isr': '1',
    'auto.create.topics.enable': 'false',
    // Quick to start, to rebalance, and to come back after being killed.
    'offsets.topic.num.partitions': '4',
    'transaction.state.log.num.partitions': '4',
    'group.initial.rebalance.delay.ms': '0',
    'broker.session.timeout.ms': '2000',
    'broker.heartbeat.interval.ms': '500',
    // An abandoned transaction is noticed within a second of its timeout.
    'transaction.abort.timed.out.transaction.cleanup.interval.ms': '1000',
  }
}

function quiet(folder: string): NodeJS.ProcessEnv {
  return { ...process.env, JAVA_TOOL_OPTIONS: `-Dlog4j2.configurationFile=${join(folder, 'log4j2.yaml')}` }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map(server => once(server, 'listening')))
  const ports = servers.map(server => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(server => once(server.close(), 'close')))
  return ports
}

async function isOpen(address: string): Promise<boolean> {
  const { connect } = await import('node:net')
  const [host, port] = address.split(':')
  return new Promise(resolve => {
    const socket = connect(Number(port), host)
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

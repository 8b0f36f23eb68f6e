/**
 * A real schema registry for tests: REGISTRY_URL (of a Confluent API) when set, else Apicurio in a container when
 * an engine answers, else Apicurio from Maven on Java 17, kept in GRASP_TEST_CACHE. Where none of the three is
 * possible, tests are skipped with the reason. Run by itself it fetches Apicurio.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

export const REGISTRY_VERSION = '3.0.9'
const API = '/apis/ccompat/v7'
const CACHE = process.env.GRASP_TEST_CACHE ?? join(tmpdir(), 'grasp-test-cache')

export interface TestRegistry {
  readonly url: string
  readonly stop: () => Promise<void>
}

export interface NoRegistry {
  readonly url?: undefined
  /** Why there is none, and what to do. */
  readonly skip: string
}

/** A registry, or why there is none. Says on standard error which one it is. */
export async function findRegistry(): Promise<TestRegistry | NoRegistry> {
  const named = process.env.REGISTRY_URL
  if (named) return say('REGISTRY_URL', { url: named, stop: async () => {} })
  if (await answers('docker', 'info', '--format', '{{.ServerVersion}}')) {
    return say('Apicurio in a container', await startContainer())
  }
  const lacking = await lacksOwnRegistry()
  if (lacking === undefined) return say('Apicurio from Maven', await startRegistry())
  return {
    skip:
      'no schema registry to test with: set REGISTRY_URL, or run a container engine, ' +
      `or install Java 17 and Maven (${lacking})`,
  }
}

function say(what: string, registry: TestRegistry): TestRegistry {
  process.stderr.write(`schema registry for tests: ${what} (${registry.url})\n`)
  return registry
}

/** Why Apicurio cannot be run as a process here; undefined when it can. */
export async function lacksOwnRegistry(): Promise<string | undefined> {
  const version = await run('java', ['-version']).then(
    ({ stderr }) => Number(/version "(\d+)/.exec(stderr)?.[1]),
    () => undefined,
  )
  if (version === undefined) return 'there is no java'
  if (!(version >= 17)) return `java is version ${version}`
  if (existsSync(folder()) || (await answers('mvn', '-version'))) return undefined
  return 'there is no mvn to fetch Apicurio with'
}

/** Apicurio as a process of this machine, always at the same address. Keeps its schemas in memory unless told. */
export class RegistryProcess {
  readonly url: string
  readonly #home: string
  readonly #env: NodeJS.ProcessEnv
  #child: ChildProcess | undefined

  private constructor(home: string, url: string, env: NodeJS.ProcessEnv) {
    this.#home = home
    this.url = url
    this.#env = env
  }

  /** `settings`: environment variables as its image takes them. */
  static async create(settings: Readonly<Record<string, string>> = {}): Promise<RegistryProcess> {
    const home = await fetchApicurio()
    const [port, management] = await freePorts(2)
    return new RegistryProcess(home, `http://127.0.0.1:${port}${API}`, {
      ...process.env,
      QUARKUS_HTTP_HOST: '127.0.0.1',
      QUARKUS_HTTP_PORT: String(port),
      QUARKUS_MANAGEMENT_HOST: '127.0.0.1',
      QUARKUS_MANAGEMENT_PORT: String(management),
      ...settings,
    })
  }

  /** Resolves when it answers; again after it was stopped or killed. Errors: what Apicurio said. */
  async start(): Promise<void> {
    const runner = `apicurio-registry-app-${REGISTRY_VERSION}-runner.jar`
    const child = spawn('java', ['-Xmx512m', '-jar', runner], {
      cwd: this.#home,
      env: this.#env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    // It must not outlive a test that fails.
    const kill = () => child.kill('SIGKILL')
    process.on('exit', kill)
    child.once('exit', () => process.off('exit', kill))
    let said = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (text: Buffer) => {
        said = (said + text).slice(-4000)
      })
    }
    await untilReady(this.url, () => {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`Apicurio did not start: ${said}`)
    })
  }

  /** As a power cut would. */
  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  stop(): Promise<void> {
    return this.#end('SIGTERM')
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), 15_000)
    await exit
    clearTimeout(timer)
  }
}

async function startRegistry(): Promise<TestRegistry> {
  const registry = await RegistryProcess.create()
  await registry.start()
  return { url: registry.url, stop: () => registry.stop() }
}

async function startContainer(): Promise<TestRegistry> {
  const image = `apicurio/apicurio-registry:${REGISTRY_VERSION}`
  const { stdout } = await run('docker', ['run', '--rm', '-d', '-p', '127.0.0.1::8080', image])
  const id = stdout.trim()
  const stop = async () => {
    await run('docker', ['stop', id])
  }
  try {
    const { stdout: address } = await run('docker', ['port', id, '8080/tcp'])
    const url = `http://${address.trim().split('\n')[0]}${API}`
    await untilReady(url, () => {})
    return { url, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function untilReady(url: string, check: () => void): Promise<void> {
  const start = Date.now()
  while (Date.now() - start < 120_000) {
    check()
    const ready = await fetch(`${url}/subjects`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (ready) return
    await new Promise(resolve => setTimeout(resolve, 200))
  }
  throw new Error(`the schema registry at ${url} did not become ready`)
}

function folder(): string {
  return join(CACHE, `apicurio-${REGISTRY_VERSION}`)
}

/** Where Apicurio is unpacked; fetched when it is not there. */
async function fetchApicurio(): Promise<string> {
  if (existsSync(folder())) return folder()
  await mkdir(CACHE, { recursive: true })
  const work = await mkdtemp(join(CACHE, 'fetching-'))
  try {
    const artifact = `-Dartifact=io.apicurio:apicurio-registry-app:${REGISTRY_VERSION}:tar.gz:all`
    const goal = ['-B', '-ntp', '-q', 'dependency:copy', artifact, `-DoutputDirectory=${work}`]
    await run('mvn', goal, { cwd: work, timeout: 300_000 })
    await mkdir(join(work, 'app'))
    await run('tar', [
      'xzf',
      join(work, `apicurio-registry-app-${REGISTRY_VERSION}-all.tar.gz`),
      '-C',
      join(work, 'app'),
    ])
    // Two processes may fetch at once: the first to finish wins.
    await rename(join(work, 'app'), folder()).catch(error => {
      if (!existsSync(folder())) throw error
    })
    return folder()
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map(server => once(server, 'listening')))
  const ports = servers.map(server => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(server => once(server.close(), 'close')))
  return ports
}

function answers(command: string, ...args: string[]): Promise<boolean> {
  return run(command, args, { timeout: 20_000 }).then(
    ({ stdout }) => stdout.trim() !== '',
    () => false,
  )
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.stdout.write(`${await fetchApicurio()}\n`)

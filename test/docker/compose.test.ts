/** The compose file, as far as it can be checked without a container engine. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { configHash } from '../../pipelines/config/identity.ts'
import { loadConfig } from '../../pipelines/config/load.ts'
import { TOPOLOGY } from '../../pipelines/topology.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const file = join(root, 'docker/compose.yaml')

/** Docker's plugin, or the program of its own that came before it. */
async function compose(): Promise<readonly [string, ...string[]] | undefined> {
  for (const command of [['docker', 'compose'], ['docker-compose']] as const) {
    const [program, ...args] = command
    const there = await run(program, [...args, 'version']).then(
      () => true,
      () => false,
    )
    if (there) return command
  }
  return undefined
}

const command = await compose()

interface Service {
  readonly command: readonly string[]
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly mem_limit?: unknown
  readonly cpus?: unknown
}

describe('docker/compose.yaml', () => {
  test('is accepted by docker compose', {
    skip: command === undefined ? 'needs docker compose (Debian: docker-compose)' : false,
  }, async () => {
    const [program, ...args] = command!
    await run(program, [...args, '-f', file, 'config', '--quiet'])
  })

  test('has every stage as a service, limited, and checked where it can be', async () => {
    const { services } = parse(await readFile(file, 'utf8'), { merge: true }) as {
      services: Record<string, Service>
    }
    for (const { stage } of TOPOLOGY) {
      assert.deepEqual(services[stage]?.command, ['run', stage])
      const { healthcheck } = services[stage]!
      const checked = stage !== 'ingest' && stage !== 'evaluation'
      assert.equal(healthcheck?.test.at(-1), checked ? stage : undefined)
    }
    for (const [name, service] of Object.entries(services)) {
      assert.ok(service.mem_limit !== undefined && service.cpus !== undefined, `${name} has no limits`)
    }
  })

  test('runs the lab: with the same settings, but for where things are', async () => {
    const lab = loadConfig({ file: 'examples/lab/grasp.yaml', cwd: root })
    const inside = loadConfig({ file: 'docker/grasp.yaml', cwd: root })
    const outside = (path: string | undefined) => path?.replace('/work/lab', join(root, 'examples/lab'))
    const moved = {
      ...inside,
      data: {
        ...inside.data,
        train: outside(inside.data.train)!,
        validation: outside(inside.data.validation),
        test: outside(inside.data.test),
      },
      prompt: outside(inside.prompt)!,
      judge: { ...inside.judge, key: outside((inside.judge as { key?: string }).key) },
    }
    assert.equal(inside.log.kind, 'kafka')
    assert.equal(await configHash(moved as typeof inside), await configHash(lab))
  })
})

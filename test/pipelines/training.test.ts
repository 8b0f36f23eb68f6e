/** Validations on the way and at the end, and updates that are made again. */
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import pino from 'pino'
import { lastValueFrom, take } from 'rxjs'
import { openLmdbLog } from '../../bus/lmdb/log.ts'
import type { Engine } from '../../engine/port.ts'
import { Checkpoints } from '../../pipelines/checkpoints.ts'
import { loadConfig } from '../../pipelines/config/load.ts'
import { Resources } from '../../pipelines/resources.ts'
import { restoreTrainer, training } from '../../pipelines/training.ts'
import { grasp, makeTinyRun, runToEnd, type TinyRun } from '../helpers/tiny-run.ts'
import { type ChatServer, chatServer, say } from '../judges/chat-server.ts'

let run: TinyRun
let judge: ChatServer
/** How often each question of the validation split was judged. */
let asked: Map<string, number>
/** Called at each of them. */
let onAsked = () => {}

/** Rates every later answer to a question of the validation split higher. */
before(async () => {
  judge = await chatServer((response, _, { body }) => {
    const [, id = ''] = /What about ([htv]\d+)\?/.exec(JSON.stringify(body.messages)) ?? []
    const times = (asked.get(id) ?? 0) + 1
    asked.set(id, times)
    if (id.startsWith('v')) onAsked()
    say(response, JSON.stringify({ match_score: id.startsWith('v') && times === 1 ? 1 : 2 }))
  })
  run = await makeTinyRun()
  const config = await readFile(run.config, 'utf8')
  const chat = `judge: { kind: chat, url: "${judge.url}", model: m }`
  await writeFile(run.config, config.replace('judge: { kind: lexical }', chat))
})
after(async () => {
  await run.remove()
  await judge[Symbol.asyncDispose]()
})

async function folder(name: string): Promise<string> {
  asked = new Map()
  onAsked = () => {}
  const cwd = join(run.folder, name)
  await mkdir(cwd)
  return cwd
}

async function readLog(cwd: string) {
  const log = await openLmdbLog({ path: join(cwd, '.grasp/logs'), run: 'tiny', readOnly: true })
  try {
    const validated: [number, string][] = []
    for await (const { value } of log.scan('evaluations'))
      if (value?.split === 'validation') validated.push([value.policyVersion, value.instance])
    const best: number[] = []
    for await (const { value } of log.scan('policies')) if (value?.best) best.push(value.version)
    return { validated, best }
  } finally {
    await log.close()
  }
}

test('the best policy is known as such where it is the last one, also when it was saved before', async () => {
  const cwd = await folder('best')
  // Version 4 is validated on the way, 6 at the end, when it has its checkpoint already.
  const { policy, updates } = await runToEnd(run, 'best')
  assert.deepEqual([policy.version, updates], [6, 6])
  assert.deepEqual((await readLog(cwd)).best, [4, 6])
  const state = await readFile(join(policy.path, 'state.json'), 'utf8')
  assert.deepEqual(JSON.parse(state).state.best, { version: 6, score: 1 })
  const exported = await grasp(['export', '--config', run.config, 'out', '--json'], { cwd })
  assert.equal(JSON.parse(exported.stdout).version, 6)
})

for (const [name, every, version] of [
  ['on the way', 4, 4],
  ['at the end', 0, 6],
] as const) {
  test(`a validation ${name} that is stopped leaves a checkpoint, and is finished by the next run`, async () => {
    const cwd = await folder(name)
    const settings = [`evaluation.every=${every}`, 'evaluation.batch=1', 'training.checkpointEvery=25']
    let kill: (signal: NodeJS.Signals) => void = () => {}
    onAsked = () => kill('SIGINT')
    const args = [
      'run',
      '--config',
      run.config,
      '--log-level',
      'info',
      ...settings.flatMap(of => ['--set', of]),
    ]
    const stopped = await grasp(args, {
      cwd,
      watch: (_, killer) => {
        kill = signal => {
          kill = () => {}
          killer(signal)
        }
      },
    })
    assert.equal(stopped.code, 130, stopped.stderr)
    assert.deepEqual(await readdir(join(cwd, '.grasp/tiny/checkpoints')), [new Checkpoints('').name(version)])
    assert.ok((await readLog(cwd)).validated.length < 4)
    onAsked = () => {}
    const { policy, updates } = await runToEnd(run, name, settings)
    assert.equal(updates, 6)
    const { validated } = await readLog(cwd)
    const of = (wanted: number) => validated.filter(([validatedAt]) => validatedAt === wanted).length
    assert.equal(of(version), 4)
    assert.equal(of(6), 4)
    assert.equal(policy.version, 6)
  })
}

test('an update that is made again with other weights is warned of, not written twice', async () => {
  const cwd = await folder('again')
  await runToEnd(run, 'again', ['evaluation.every=0'])
  const config = loadConfig({ file: run.config, cwd, set: ['evaluation.every=0'] })
  await rm(join(config.output.path, 'checkpoints'), { recursive: true })
  const lines: string[] = []
  const logger = pino({ level: 'warn' }, { write: line => void lines.push(line) })
  const hooks = { signal: new AbortController().signal, logger, progress: () => {} }
  await using resources = await Resources.open(config, hooks)
  const context = await resources.judged()
  const { log } = context
  const before = await log.committed('slices', 'training')
  const other: Engine['update'] = async options => ({
    ...(await context.engine.update(options)),
    weightsHash: 'f'.repeat(64),
  })
  const engine = new Proxy(context.engine, {
    get: (of, method) => (method === 'update' ? other : Reflect.get(of, method).bind(of)),
  })
  const checkpoints = new Checkpoints(join(config.output.path, 'checkpoints'))
  const changed = { ...context, engine }
  const restored = await restoreTrainer(changed, checkpoints)
  const { updates$ } = await training(changed, { checkpoints, restored, announce: () => {} })
  await lastValueFrom(updates$.pipe(take(2)))
  assert.equal(lines.filter(line => line.includes('gave other weights')).length, 2)
  assert.deepEqual((await log.topics()).find(({ topic }) => topic === 'updates')!.ends, [6])
  assert.deepEqual(await log.committed('slices', 'training'), before)
})

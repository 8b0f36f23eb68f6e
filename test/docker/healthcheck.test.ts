/** The containers' health check, against a real stage process on a real Kafka. */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findKafka } from '../helpers/kafka-broker.ts'
import { makeTinyRun, type TinyRun } from '../helpers/tiny-run.ts'

const kafka = await findKafka()
const options = kafka.brokers === undefined ? { skip: kafka.skip } : {}
const root = fileURLToPath(new URL('../..', import.meta.url))

let tiny: TinyRun
let stage: ChildProcess | undefined
before(async () => {
  tiny = await makeTinyRun(4)
})
after(async () => {
  if (stage !== undefined && stage.exitCode === null) {
    stage.kill('SIGKILL')
    await once(stage, 'exit')
  }
  await tiny.remove()
  if (kafka.brokers !== undefined) await kafka.release()
})

test('a stage is healthy while it is a member of its group', options, async () => {
  const settings = ['--config', tiny.config]
  const run = `run=health-${process.pid}-${Date.now()}`
  for (const set of [run, 'log.kind=kafka', `log.brokers=${kafka.brokers!.join(',')}`])
    settings.push('--set', set)
  const grasp = `${root}bin/grasp.js`
  const sick = await execute([`${root}docker/healthcheck.js`, 'filtering', ...settings])
  assert.equal(sick.code, 1)

  stage = spawn(
    process.execPath,
    [grasp, 'run', '--json', 'filtering', ...settings, '--log-level', 'debug'],
    {
      cwd: tiny.folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  let said = ''
  stage.stderr!.on('data', text => {
    said += text
  })
  let outcome = sick
  for (let attempt = 0; outcome.code !== 0 && attempt < 30 && stage.exitCode === null; attempt++) {
    outcome = await execute([`${root}docker/healthcheck.js`, 'filtering', ...settings])
  }
  assert.deepEqual(outcome, { code: 0, stderr: '' }, `${outcome.stderr}\nthe stage said: ${said}`)
  // What the stage was given is also found by its process, which is number 1 in a container.
  const found = await execute([`${root}docker/healthcheck.js`, '--process', String(stage.pid)])
  assert.deepEqual(found, { code: 0, stderr: '' })
  // Nobody works as another stage.
  const other = await execute([`${root}docker/healthcheck.js`, 'scoring', ...settings])
  assert.equal(other.code, 1)
  assert.match(other.stderr, /no member of group scoring on .*; members: none/)
  // The trainer joins its group when retrieval is done.
  const trainer = await execute([`${root}docker/healthcheck.js`, 'training', ...settings])
  assert.deepEqual(trainer, { code: 0, stderr: '' })
  const none = await execute([`${root}docker/healthcheck.js`, 'baking', ...settings])
  assert.deepEqual(none, { code: 1, stderr: 'there is no stage baking\n' })
})

test('other commands than those of stages need no check', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', `${root}bin/grasp.js`, 'lag'])
  await once(child, 'spawn')
  try {
    const check = await execute([`${root}docker/healthcheck.js`, '--process', String(child.pid)])
    assert.deepEqual(check, { code: 0, stderr: '' })
  } finally {
    child.kill()
  }
})

function execute(args: string[]): Promise<{ code: number | string | null; stderr: string }> {
  return new Promise(resolve => {
    execFile(process.execPath, args, { cwd: tiny.folder }, (error, _stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code ?? null), stderr }),
    )
  })
}

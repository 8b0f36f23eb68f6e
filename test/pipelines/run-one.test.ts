/** Every stage in a process of its own, tied together by the log alone. */
import assert from 'node:assert/strict'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { grasp, makeTinyRun, runToEnd, type TinyRun } from '../helpers/tiny-run.ts'

let run: TinyRun
before(async () => {
  run = await makeTinyRun(12)
  for (const name of ['whole', 'stages']) await mkdir(join(run.folder, name), { recursive: true })
})
after(() => run.remove())

/** Runs the stages side by side and returns the result that evaluation prints. */
async function runStages(where: string, stages: readonly string[], settings: readonly string[] = []) {
  const sets = settings.flatMap(setting => ['--set', setting])
  const outcomes = await Promise.all(
    stages.map(async stage => ({
      stage,
      ...(await grasp(['run', stage, '--config', run.config, '--json', ...sets], {
        cwd: join(run.folder, where),
      })),
    })),
  )
  for (const { stage, code, stderr } of outcomes) assert.equal(code, 0, `${stage}: ${stderr}`)
  return JSON.parse(outcomes.find(({ stage }) => stage === 'evaluation')!.stdout).result
}

const ALL = ['ingest', 'retrieval', 'validation', 'filtering', 'rollout', 'scoring', 'training', 'evaluation']

test('stages as processes end in the weights of one process', async () => {
  const whole = await runToEnd(run, 'whole')
  const stages = await runStages('stages', ALL)
  assert.equal(stages.policy.weightsHash, whole.policy.weightsHash)
  assert.deepEqual(stages.scores, whole.scores)
  assert.deepEqual(stages.kl, whole.kl)
  assert.equal(stages.updates, whole.updates)
})

test('the trainer publishes again, when it starts, all that batches at hand are sampled with', async () => {
  await mkdir(join(run.folder, 'lagging'))
  const settings = ['rollout.lag=1']
  assert.equal((await runToEnd(run, 'lagging', settings)).updates, 3)
  const published = join(run.folder, 'lagging/.grasp/tiny/policies')
  const sets = settings.flatMap(setting => ['--set', setting])
  const again = await grasp(['run', 'training', '--config', run.config, ...sets], {
    cwd: join(run.folder, 'lagging'),
  })
  assert.equal(again.code, 0, again.stderr)
  assert.deepEqual((await readdir(published)).sort(), ['v000002', 'v000003'])
})

test('where nothing is kept, the result is the model as it was', async () => {
  await mkdir(join(run.folder, 'untrained'))
  const { policy, updates, kl } = await runStages('untrained', ALL, ['validation.tau=1'])
  assert.deepEqual([policy.version, policy.path, updates], [0, join(run.folder, 'model'), 0])
  assert.equal(kl.before, kl.after)
})

test('a stage without checkpoints does not speak of one when it is to stop', async () => {
  await mkdir(join(run.folder, 'stopped'))
  let sent = false
  const watch = (stderr: string, kill: (signal: NodeJS.Signals) => void) => {
    // It waits for instances then.
    if (sent || !stderr.includes('] rollout')) return
    sent = true
    kill('SIGINT')
  }
  const args = ['run', 'rollout', '--config', run.config]
  const { code, stderr } = await grasp(args, { cwd: join(run.folder, 'stopped'), watch })
  assert.equal(code, 130, stderr)
  assert.match(stderr, /^stopping after this step; once more stops at once/m)
  assert.match(stderr, /INTERRUPTED: stage rollout .*goes on with it/)
})

test('an unknown stage is named with those that there are', async () => {
  const { code, stderr } = await grasp(['run', 'scorin', '--config', run.config], { cwd: run.folder })
  assert.equal(code, 2)
  assert.match(stderr, /no stage "scorin".*scoring/)
})

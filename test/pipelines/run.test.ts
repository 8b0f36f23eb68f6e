/** The pipeline from files to policy, by the real command line on a tiny random model. */
import assert from 'node:assert/strict'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { openLmdbLog } from '../../bus/lmdb/log.ts'
import type { Records, Topic } from '../../schemas/types.ts'
import { writeTinyModel } from '../helpers/tiny-model.ts'
import { grasp, makeTinyRun, runToEnd, type TinyRun, tinyItem } from '../helpers/tiny-run.ts'

let run: TinyRun
let undisturbed: Awaited<ReturnType<typeof runToEnd>>
before(async () => {
  run = await makeTinyRun()
  await folder('undisturbed')
  undisturbed = await runToEnd(run, 'undisturbed')
})
after(() => run.remove())

function folder(name: string): Promise<string | undefined> {
  return mkdir(join(run.folder, name), { recursive: true })
}

async function readTopic<T extends Topic>(where: string, topic: T) {
  const log = await openLmdbLog({
    path: join(run.folder, where, '.grasp/logs'),
    run: 'tiny',
    readOnly: true,
  })
  try {
    const records: Records[T][] = []
    for await (const record of log.scan(topic)) records.push(record.value!)
    return records
  } finally {
    await log.close()
  }
}

test('a run ends with one update a batch and a result that adds up', async () => {
  const { instances, updates, scores, kl, policy } = undisturbed
  assert.deepEqual(instances, { seen: 24, kept: 24 })
  assert.equal(updates, 6)
  assert.equal(policy.weightsHash.length, 64)
  for (const role of ['student', 'teacher', 'grasp']) assert.ok(scores[role] >= 0 && scores[role] <= 1)
  assert.ok(kl.before > 0 && kl.after > 0)
  const logged = await readTopic('undisturbed', 'updates')
  assert.deepEqual(
    logged.map(update => update.version),
    [1, 2, 3, 4, 5, 6],
  )
  assert.deepEqual(
    logged.flatMap(update => update.instances).sort(),
    Array.from({ length: 24 }, (_, i) => `t${i}`).sort(),
  )
  const metrics = await readFile(join(run.folder, 'undisturbed/.grasp/tiny/metrics.jsonl'), 'utf8')
  assert.equal(metrics.trim().split('\n').length, 6)
})

test('every batch is sampled with the policy that the rule names, and its loss is the KL of its slices', async () => {
  for (const { batch, policyVersion } of await readTopic('undisturbed', 'rollouts'))
    assert.equal(policyVersion, batch.number)
  for (const { loss, kl } of await readTopic('undisturbed', 'updates'))
    assert.ok(Math.abs(loss - kl) < 1e-5, `${loss} and ${kl}`)
})

test('the same seed gives the same weights, another seed others', async () => {
  await folder('again')
  const again = await runToEnd(run, 'again')
  assert.equal(again.policy.weightsHash, undisturbed.policy.weightsHash)
  assert.deepEqual(again.scores, undisturbed.scores)
  await folder('seed')
  const other = await runToEnd(run, 'seed', ['training.seed=2'])
  assert.notEqual(other.policy.weightsHash, undisturbed.policy.weightsHash)
})

test('a finished run only adds up when it is run again', async () => {
  const before = await readTopic('undisturbed', 'evaluations')
  const { seconds: _, ...again } = await runToEnd(run, 'undisturbed')
  const { seconds: __, ...first } = undisturbed
  assert.deepEqual(again, first)
  assert.equal((await readTopic('undisturbed', 'evaluations')).length, before.length)
})

for (const [name, settings] of [
  ['strictly on-policy', []],
  ['with a lag of 2', ['rollout.lag=2']],
] as const) {
  test(`kill -9 at several points, ${name}: the next run ends in the same weights`, async () => {
    const where = `killed ${settings}`
    await folder(where)
    const sets = settings.flatMap(setting => ['--set', setting])
    let expected = undisturbed
    if (settings.length > 0) {
      await folder(`whole ${settings}`)
      expected = await runToEnd(run, `whole ${settings}`, settings)
      for (const { batch, policyVersion } of await readTopic(`whole ${settings}`, 'rollouts')) {
        assert.equal(policyVersion, Math.max(0, batch.number - 2))
      }
    }
    for (const sign of [/"stage":"validation"/, /"version":2,.*"update"/, /"version":5,.*"update"/]) {
      let killed = false
      const watch = (stderr: string, kill: (signal: NodeJS.Signals) => void) => {
        if (killed || !sign.test(stderr)) return
        killed = true
        kill('SIGKILL')
      }
      const outcome = await grasp(['run', '--config', run.config, '--log-level', 'debug', ...sets], {
        cwd: join(run.folder, where),
        watch,
      })
      assert.equal(outcome.signal, 'SIGKILL', `never saw ${sign} in: ${outcome.stderr}`)
    }
    const resumed = await runToEnd(run, where, settings)
    assert.equal(resumed.policy.weightsHash, expected.policy.weightsHash)
    assert.deepEqual(resumed.scores, expected.scores)
    const updates = await readTopic(where, 'updates')
    assert.deepEqual(
      updates.map(update => update.version),
      [1, 2, 3, 4, 5, 6],
    )
  })
}

test('Ctrl-C finishes the step, saves, says so, and the next run ends in the same weights', async () => {
  await folder('interrupted')
  let sent = false
  const watch = (stderr: string, kill: (signal: NodeJS.Signals) => void) => {
    if (sent || !/"version":2,.*"update"/.test(stderr)) return
    sent = true
    kill('SIGINT')
  }
  const outcome = await grasp(['run', '--config', run.config, '--log-level', 'info'], {
    cwd: join(run.folder, 'interrupted'),
    watch,
  })
  assert.equal(outcome.code, 130, outcome.stderr)
  assert.match(outcome.stderr, /goes on with it/)
  const resumed = await runToEnd(run, 'interrupted')
  assert.equal(resumed.policy.weightsHash, undisturbed.policy.weightsHash)
})

test('two epochs train on every instance twice', async () => {
  await folder('epochs')
  const { updates, instances } = await runToEnd(run, 'epochs', ['training.epochs=2'])
  assert.equal(updates, 12)
  assert.deepEqual(instances, { seen: 24, kept: 24 })
})

test('with several partitions and hardly a credit, every instance is trained on once an epoch', async () => {
  await folder('partitions')
  // Twelve batches over three partitions: the third begins with batch 10, which comes before batch 2 then.
  const settings = ['log.partitions=3', 'training.epochs=2', 'credits.records=1', 'credits.bytes=1']
  const result = await runToEnd(run, 'partitions', settings)
  assert.equal(result.updates, 12)
  const trained = (await readTopic('partitions', 'updates')).flatMap(({ instances }) => instances)
  assert.deepEqual(
    trained.sort(),
    Array.from({ length: 24 }, (_, i) => [`t${i}`, `t${i}`])
      .flat()
      .sort(),
  )
})

test('dense slices train like factored ones; top-k says how much it cuts off', async () => {
  const [factored] = await readTopic('undisturbed', 'updates')
  await folder('dense')
  await runToEnd(run, 'dense', ['scoring.encoding=dense', 'scoring.sliceBytes=4096'])
  const [dense] = await readTopic('dense', 'updates')
  assert.ok(Math.abs(dense!.loss - factored!.loss) < 1e-5)
  assert.ok((await readTopic('dense', 'slices')).length > 24, 'slices were not split')
  await folder('topk')
  await runToEnd(run, 'topk', ['scoring.encoding=topk', 'scoring.k=32'])
  for (const { truncation } of await readTopic('topk', 'slices')) assert.ok(truncation! > 0)
})

test('where nothing is kept, the policy is the model as it was, and that is said', async () => {
  await folder('nothing')
  const args = ['run', '--config', run.config, '--json', '--set', 'validation.tau=1']
  const { code, stdout, stderr } = await grasp(args, { cwd: join(run.folder, 'nothing') })
  assert.equal(code, 0, stderr)
  const { instances, updates, policy } = JSON.parse(stdout)
  assert.deepEqual([instances.kept, updates, policy.version], [0, 0, 0])
  assert.equal(policy.path, join(run.folder, 'model'))
  assert.match(stderr, /no question reached validation\.tau = 1/)
})

test('where no rollout fits the context, or no answer is scored, that is said', async () => {
  await folder('unfit')
  const run1 = ['run', '--config', run.config, '--json']
  const unfit = await grasp([...run1, '--set', 'rollout.maxNewTokens=250'], {
    cwd: join(run.folder, 'unfit'),
  })
  assert.equal(unfit.code, 0, unfit.stderr)
  assert.match(
    unfit.stderr,
    /no response could be trained on \(`grasp deadletters list` tells why\), so nothing was/,
  )
  await folder('unscored')
  const key = join(run.folder, 'key.json')
  await writeFile(key, JSON.stringify({ topics: {}, aspects: {} }))
  const settings = ['--set', `judge.key=${key}`]
  const unscored = await grasp([...run1, ...settings], { cwd: join(run.folder, 'unscored') })
  assert.equal(unscored.code, 0, unscored.stderr)
  assert.match(
    unscored.stderr,
    /no answer of the teacher could be scored \(`grasp topics tail validations` tells/,
  )
})

test('responses that leave no room for a prompt are refused before anything is begun', async () => {
  const cwd = join(run.folder, 'room')
  await folder('room')
  for (const section of ['validation', 'rollout', 'evaluation']) {
    const args = ['--config', run.config, '--set', `${section}.maxNewTokens=256`]
    const { code, stderr } = await grasp(['run', ...args], { cwd })
    assert.equal(code, 2, stderr)
    assert.match(
      stderr,
      new RegExp(`${section}\\.maxNewTokens is 256, but the context .* holds 256 tokens, those of`),
    )
    const doctor = await grasp(['doctor', ...args], { cwd })
    assert.equal(doctor.code, 1)
    assert.match(doctor.stdout, new RegExp(`${section}\\.maxNewTokens is 256`))
  }
  // Nobody is to be evaluated where nothing was held out.
  const plain = join(run.folder, 'plain.yaml')
  const whole = await readFile(run.config, 'utf8')
  await writeFile(plain, whole.replace(', validation: validation.jsonl, test: test.jsonl', ''))
  const unheld = await grasp(['doctor', '--config', plain, '--set', 'evaluation.maxNewTokens=512'], { cwd })
  assert.equal(unheld.code, 0, unheld.stdout)
})

test('while further epochs are written, Ctrl-C stops in good order, and a second ends the process', async () => {
  await folder('many')
  const cwd = join(run.folder, 'many')
  const args = ['run', '--config', run.config, '--log-level', 'info', '--set', 'training.epochs=100000']
  const pressed = async (times: number) => {
    let sent = false
    return grasp(args, {
      cwd,
      watch: (stderr, kill) => {
        if (sent || !stderr.includes('"update"')) return
        sent = true
        kill('SIGINT')
        if (times === 2) setTimeout(() => kill('SIGINT'), 300)
      },
    })
  }
  const once = await pressed(1)
  assert.equal(once.code, 130, once.stderr)
  const instances = async () => (await readTopic('many', 'instances')).length
  const before = await instances()
  assert.ok(before > 24 && before < 2_400_000, `${before} instances`)
  const twice = await pressed(2)
  // It may have ended by the first, too.
  assert.ok(twice.signal === 'SIGINT' || twice.code === 130, twice.stderr)
  assert.ok((await instances()) > before)
})

test('where no question fits the context, the result counts what failed', async () => {
  await folder('misfits')
  const args = ['run', '--config', run.config, '--set', 'validation.maxNewTokens=250']
  const cwd = join(run.folder, 'misfits')
  const { code, stdout, stderr } = await grasp([...args, '--json'], { cwd })
  assert.equal(code, 0, stderr)
  const { instances, deadLetters } = JSON.parse(stdout)
  assert.deepEqual([instances.seen, deadLetters], [0, 24])
  assert.match(stderr, /no question could be validated \(`grasp deadletters list` tells why\)/)
  const again = await grasp(args, { cwd })
  assert.match(again.stdout, /could not be processed +24 \(`grasp deadletters list`/)
})

test("a held-out question that cannot be asked is in nobody's way when the run goes on", async () => {
  await folder('misfit')
  const items = [tinyItem('h0'), tinyItem('h1', { question: 'a man sat on a hat '.repeat(60) })]
  await writeFile(join(run.folder, 'misfit.jsonl'), items.map(item => `${JSON.stringify(item)}\n`).join(''))
  const settings = [`data.test=${join(run.folder, 'misfit.jsonl')}`, 'evaluation.batch=1']
  const first = await runToEnd(run, 'misfit', settings)
  // For the student, the teacher and the probe.
  assert.equal(first.deadLetters, 3)
  const { seconds: _, ...again } = await runToEnd(run, 'misfit', settings)
  assert.deepEqual({ ...again, seconds: first.seconds }, first)
})

test('without its checkpoint, a run makes the same policy from its log', async () => {
  await cp(join(run.folder, 'undisturbed'), join(run.folder, 'no checkpoint'), { recursive: true })
  await rm(join(run.folder, 'no checkpoint/.grasp/tiny/checkpoints'), { recursive: true })
  const { seconds: _, ...again } = await runToEnd(run, 'no checkpoint')
  const { seconds: __, ...expected } = undisturbed
  const path = again.policy.path.replace('no checkpoint', 'undisturbed')
  assert.deepEqual({ ...again, policy: { ...again.policy, path } }, expected)
})

test('checkpoints whose log was removed are refused', async () => {
  await cp(join(run.folder, 'undisturbed'), join(run.folder, 'no log'), { recursive: true })
  await rm(join(run.folder, 'no log/.grasp/logs'), { recursive: true })
  const args = ['run', '--config', run.config]
  const { code, stderr } = await grasp(args, { cwd: join(run.folder, 'no log') })
  assert.equal(code, 1)
  assert.match(stderr, /CHECKPOINT_INVALID.*slices up to 24.*end at 0: the log was removed.*remove .*tiny/)
})

test('a log of another configuration is refused, naming what differs', async () => {
  const args = ['run', '--config', run.config, '--set', 'training.batch=8']
  const { code, stderr } = await grasp(args, { cwd: join(run.folder, 'undisturbed') })
  assert.equal(code, 1)
  assert.match(stderr, /LOG_MISMATCH.*training\.batch was 4 and is 8/)
})

test('a log of another model is refused', async () => {
  await writeTinyModel(join(run.folder, 'other'), { contextLength: 256, seed: 9 })
  const args = ['run', '--config', run.config, '--set', `model.path=${join(run.folder, 'other')}`]
  const { code, stderr } = await grasp(args, { cwd: join(run.folder, 'undisturbed') })
  assert.equal(code, 1)
  assert.match(stderr, /LOG_MISMATCH.*another model/)
})

import assert from 'node:assert/strict'
import { cp, mkdir, open, rm, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import pino from 'pino'
import { output } from '../../bus/port.ts'
import { openLocalEngine } from '../../engine/local-engine.ts'
import { Checkpoints, trainerStateSchema } from '../../pipelines/checkpoints.ts'
import { loadConfig } from '../../pipelines/config/load.ts'
import { bestPolicy, choosePolicy, keptPolicies, openPolicy } from '../../pipelines/policies.ts'
import { publisher } from '../../pipelines/publish.ts'
import { RemotePolicies } from '../../pipelines/remote-policies.ts'
import { Resources } from '../../pipelines/resources.ts'
import { training } from '../../pipelines/training.ts'
import { countSyncs } from '../helpers/count-syncs.ts'
import { makeTinyRun, runToEnd, type TinyRun } from '../helpers/tiny-run.ts'

let run: TinyRun
before(async () => {
  run = await makeTinyRun(4)
  await mkdir(join(run.folder, 'whole'))
  await runToEnd(run, 'whole')
})
after(() => run.remove())

/** The finished run's checkpoint beside a log in which nothing is. */
async function withCheckpoint(where: string, work: (resources: Resources) => Promise<void>): Promise<void> {
  const cwd = join(run.folder, where)
  await cp(join(run.folder, 'whole/.grasp/tiny'), join(cwd, '.grasp/tiny'), { recursive: true })
  const hooks = {
    signal: new AbortController().signal,
    logger: pino({ level: 'silent' }),
    progress: () => {},
  }
  await using resources = await Resources.open(loadConfig({ file: run.config, cwd }), hooks)
  await work(resources)
}

/** The checkpoint in the engine, and the state that training is to go on from. */
async function restore(resources: Resources) {
  const context = await resources.judged()
  const checkpoints = new Checkpoints(join(context.config.output.path, 'checkpoints'))
  const restored = trainerStateSchema.parse(await context.engine.loadCheckpoint(checkpoints.path(1)))
  return { context, checkpoints, restored: { ...restored, positions: [0] } }
}

test('a checkpoint whose record a crash took away is recorded when training goes on', () =>
  withCheckpoint('unrecorded', async resources => {
    const { context, checkpoints, restored } = await restore(resources)
    const { config, log } = context
    assert.equal(restored.best?.version, 1)
    assert.deepEqual(await keptPolicies(log, config), [])
    for (let start = 0; start < 2; start++) {
      await training(context, { checkpoints, restored, announce: () => {} })
      const [policy, ...others] = await keptPolicies(log, config)
      assert.deepEqual([policy?.version, policy?.best, policy?.path], [1, true, checkpoints.path(1)])
      assert.deepEqual(others, [])
    }
    assert.deepEqual((await log.topics()).find(({ topic }) => topic === 'policies')?.ends, [1])
  }))

test('a version that was recorded before it was known as the best is recorded once more', () =>
  withCheckpoint('late', async resources => {
    const { context, checkpoints, restored } = await restore(resources)
    const { config, log, engine } = context
    const weightsHash = await engine.weightsHash(1)
    const before = {
      version: 1,
      path: checkpoints.path(1),
      weightsHash,
      tokenizer: 't',
      score: null,
      best: false,
    }
    await log.append([output('policies', '1', before)])
    for (let start = 0; start < 2; start++) {
      await training(context, { checkpoints, restored, announce: () => {} })
      const [policy] = await keptPolicies(log, config)
      assert.deepEqual([policy?.version, policy?.best, policy?.score], [1, true, restored.best!.score])
    }
    assert.deepEqual((await log.topics()).find(({ topic }) => topic === 'policies')?.ends, [2])
  }))

test('the best policy stays the best when it is published too', () =>
  withCheckpoint('published', async ({ stage: { log, config } }) => {
    const path = join(config.output.path, 'checkpoints/v000001')
    const record = (version: number, score: number | null) =>
      output('policies', String(version), {
        ...{ version, path, score, best: score !== null },
        ...{ weightsHash: 'w', tokenizer: 't' },
      })
    await log.append([record(1, 0.5), record(1, null), record(2, null)])
    assert.equal((await bestPolicy(log, config)).version, 1)
  }))

test('a version that was published before the process died is published again, and recorded once', () =>
  withCheckpoint('again', async resources => {
    const context = await resources.judged()
    const { config, log, engine } = context
    const checkpoints = new Checkpoints(join(config.output.path, 'checkpoints'))
    for (let start = 0; start < 2; start++) {
      const publish = publisher(context)
      await engine.loadCheckpoint(checkpoints.path(1))
      await publish(1)
    }
    const [first, second] = await keptPolicies(log, config)
    assert.equal(first?.weightsHash, await engine.weightsHash(1))
    assert.equal(second, undefined)
    // A compacted topic keeps one record of a key: this one must not push out what is known of the checkpoint.
    const keys = []
    for await (const { key } of log.scan('policies')) keys.push(key)
    assert.deepEqual(keys, ['published 1'])
    assert.deepEqual((await log.topics()).find(({ topic }) => topic === 'policies')?.ends, [1])
  }))

test('a version that was published and not recorded as a checkpoint is recorded, with its score', () =>
  withCheckpoint('both', async resources => {
    const { context, checkpoints, restored } = await restore(resources)
    const { config, log, engine } = context
    await publisher(context)(1)
    await training(context, { checkpoints, restored, announce: () => {} })
    assert.deepEqual(
      (await keptPolicies(log, config)).map(({ best }) => best),
      [true],
    )

    // What samples and scores goes by what was published, though the checkpoint was recorded later.
    const { weightsHash } = await bestPolicy(log, config)
    await rm(checkpoints.path(1), { recursive: true })
    const policies = new RemotePolicies({ log, engine, cache: '', stopped: () => false })
    await policies.reached(1)
    assert.equal(await engine.weightsHash(1), weightsHash)
  }))

test('what waits for a policy gives up when it is closed', () =>
  withCheckpoint('waiting', async resources => {
    const { log, engine } = await resources.judged()
    const policies = new RemotePolicies({ log, engine, cache: '', stopped: () => false })
    const waiting = assert.rejects(policies.reached(5), { code: 'INTERRUPTED', message: /policy 5/ })
    await policies.close()
    await waiting
  }))

test('what is published is not waited for until it is on the disk', t =>
  withCheckpoint('unsynced', async resources => {
    const context = await resources.judged()
    const checkpoint = new Checkpoints(join(context.config.output.path, 'checkpoints')).path(1)
    const { threads, tokensPerPass, sequencesPerPass } = context.config.model
    const engine = await openLocalEngine({
      ...{ path: context.config.model.path, device: 'cpu', threads, tokensPerPass, sequencesPerPass },
      keepPolicies: 0,
    })
    try {
      await engine.loadCheckpoint(checkpoint)
      const syncs = await countSyncs(t)
      await publisher({ ...context, engine })(1)
      assert.equal(syncs(), 0)
      await engine.exportPolicy(1, join(run.folder, 'exported'), 'f32')
      assert.ok(syncs() > 2)
    } finally {
      await engine.close()
    }
  }))

test('a published policy that a power cut damaged is refused, and what is to be done is said', () =>
  withCheckpoint('damaged', async resources => {
    const context = await resources.judged()
    const { config, log, engine } = context
    const checkpoint = new Checkpoints(join(config.output.path, 'checkpoints')).path(1)
    await engine.loadCheckpoint(checkpoint)
    await publisher(context)(1)
    const published = join(config.output.path, 'policies/v000001')
    const file = join(published, 'model.safetensors')
    const policies = () => new RemotePolicies({ log, engine, cache: '', stopped: () => false }).reached(1)
    const refused = {
      code: 'CHECKPOINT_INVALID',
      message: /policy 1.*model\.safetensors.*power cut.*training stage/,
    }
    // As file systems leave files that were never flushed.
    await truncate(file, 1000)
    await assert.rejects(policies(), refused)
    await truncate(file, 0)
    await assert.rejects(policies(), refused)
    await publisher(context)(1)
    await policies()

    // A checkpoint is on the disk, so it is preferred.
    assert.equal((await keptPolicies(log, config))[0]?.path, checkpoint)
    await rm(checkpoint, { recursive: true })
    const [left] = await keptPolicies(log, config)
    assert.equal(left?.path, published)
    const whole = await openPolicy(config, left!)
    await whole.close()
    // The last block of the weights never reached the disk: zeros.
    const weights = await open(file, 'r+')
    await weights.write(Buffer.alloc(512), 0, 512, (await weights.stat()).size - 512)
    await weights.close()
    await assert.rejects(openPolicy(config, left!), {
      code: 'CHECKPOINT_INVALID',
      message: /policy 1.*damaged/,
    })
  }))

test('of a run without a log there is the untrained model, and that is said', async () => {
  const config = loadConfig({ file: run.config, cwd: join(run.folder, 'never run') })
  await assert.rejects(choosePolicy(config, 'best'), {
    code: 'LOG_UNAVAILABLE',
    message: /there is no log in .* the untrained model \(--policy base\) needs no log$/,
  })
  const { version, path } = await choosePolicy(config, 'base')
  assert.deepEqual([version, path], [0, config.model.path])
})

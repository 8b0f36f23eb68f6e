/**
 * A run goes on when no record of a batch can be decoded, whichever topic it is damaged in. Guards against
 * waiting for ever for a policy version that nothing is left to make, and against counting what is damaged as
 * members of the batch that comes next.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { openLmdbLog } from '../../bus/lmdb/log.ts'
import { batchKey } from '../../operators/batch-key.ts'
import type { Topic } from '../../schemas/types.ts'
import { appendRaw, RUN } from '../bus/lmdb/harness.ts'
import { gather } from '../bus/samples.ts'
import { grasp, makeTinyRun, runToEnd } from '../helpers/tiny-run.ts'

const SIZE = 4

test('batches that are damaged as instances, as rollouts or as slices', { timeout: 120_000 }, async () => {
  const tiny = await makeTinyRun(2 * SIZE)
  const path = join(tiny.folder, '.grasp', 'logs')
  const damage = (topic: Topic, number: number) => {
    for (let i = 0; i < SIZE; i++)
      appendRaw(path, topic, batchKey({ number, size: SIZE }), new Uint8Array([1, 2, 3]))
  }
  try {
    // As if batch 0 had been damaged in `slices`, 1 in `rollouts` and 2 in `instances`, each after the stage that
    // reads the topic before was done with it.
    const log = await openLmdbLog({ path, run: RUN })
    for (const number of [0, 1, 2]) damage('instances', number)
    for (const number of [0, 1]) damage('rollouts', number)
    damage('slices', 0)
    const positions = { rollout: ['instances', 2 * SIZE], scoring: ['rollouts', SIZE] } as const
    for (const [group, [topic, offset]] of Object.entries(positions))
      await log.commit({ group, outputs: [], positions: [{ topic, partition: 0, offset }] })

    const { updates, instances } = await runToEnd(tiny, '.', [`run=${RUN}`])
    assert.equal(updates, 5)
    assert.equal(instances.kept, 2 * SIZE)
    const made = (await gather(log.scan('updates'))).map(({ value }) => value!)
    assert.deepEqual(
      made.map(({ batch, responses, rolloutVersion }) => [batch, responses, rolloutVersion]),
      [
        [0, 0, 0],
        [1, 0, 1],
        [2, 0, 2],
        [3, SIZE, 3],
        [4, SIZE, 4],
      ],
    )
    const letters = (await gather(log.scan('deadletters'))).map(({ value }) => value!)
    assert.deepEqual(
      letters.map(({ stage, code }) => `${stage} ${code}`).sort(),
      ['rollout', 'scoring', 'training'].flatMap(stage =>
        Array.from({ length: SIZE }, () => `${stage} RECORD_UNDECODABLE`),
      ),
    )
    await log.close()
  } finally {
    await tiny.remove()
  }
})

test('a batch that lacks a slice for ever fails the run, rather than ending it early', {
  timeout: 120_000,
}, async () => {
  const tiny = await makeTinyRun(SIZE)
  const path = join(tiny.folder, '.grasp', 'logs')
  const damage = (topic: Topic, key: string, count: number) => {
    for (let i = 0; i < count; i++) appendRaw(path, topic, key, new Uint8Array([1, 2, 3]))
  }
  try {
    // Of batch 0 one slice is damaged together with its key, so that nobody can tell what it belonged to.
    const log = await openLmdbLog({ path, run: RUN })
    const key = batchKey({ number: 0, size: SIZE })
    damage('instances', key, SIZE)
    damage('rollouts', key, SIZE)
    damage('slices', key, SIZE - 1)
    damage('slices', 'damaged', 1)
    for (const [group, topic] of [
      ['rollout', 'instances'],
      ['scoring', 'rollouts'],
    ] as const)
      await log.commit({ group, outputs: [], positions: [{ topic, partition: 0, offset: SIZE }] })
    await log.close()

    // With a lag of 1 batch 1 is sampled without the policy that batch 0 was to make.
    const args = ['run', '--config', tiny.config, '--set', `run=${RUN}`, '--set', 'rollout.lag=1']
    const { code, stderr } = await grasp(args, { cwd: tiny.folder })
    assert.equal(code, 1, stderr)
    assert.match(stderr, /STAGE_FAILED.*only 0 of 2 batches/)
  } finally {
    await tiny.remove()
  }
})

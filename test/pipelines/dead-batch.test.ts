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
import { makeTinyRun, runToEnd } from '../helpers/tiny-run.ts'

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

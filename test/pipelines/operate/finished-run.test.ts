/**
 * Records that come into a finished run go all the way to the weights in one further run. Guards against later
 * stages ending at the seals of the first run, before anything reaches them.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { deadLetter } from '../../../bus/dead-letter.ts'
import { openLmdbLog } from '../../../bus/lmdb/log.ts'
import { type Envelope, output } from '../../../bus/port.ts'
import { GraspError } from '../../../errors/grasp-error.ts'
import { gather } from '../../bus/samples.ts'
import { grasp, makeTinyRun, runToEnd, type TinyRun } from '../../helpers/tiny-run.ts'

/** A context that validation refused, of which `contexts` itself holds nothing else. */
async function refuse({ folder }: TinyRun): Promise<void> {
  const log = await openLmdbLog({ path: join(folder, '.grasp', 'logs'), run: 'tiny' })
  const aside = await openLmdbLog({ path: join(folder, 'aside'), run: 'tiny' })
  try {
    const [first] = (await gather(log.scan('contexts'))).filter(({ value }) => value?.split === 'train')
    await aside.append([output('contexts', 'late', { ...first!.value!, id: 'late' })])
    const [late] = await gather(aside.scan('contexts'))
    const error = new GraspError('PROMPT_TOO_LONG', 'too long for that model')
    await log.append([deadLetter(late as Envelope, { stage: 'validation', error })])
  } finally {
    await log.close()
    await aside.close()
  }
}

test('a replayed record and a stage that was set back are trained on by one further run', async () => {
  const tiny = await makeTinyRun(4)
  const run = (...args: string[]) => grasp(args, { cwd: tiny.folder })
  try {
    assert.equal((await runToEnd(tiny, '.')).updates, 1)
    await refuse(tiny)
    const replay = await run('deadletters', 'replay', '--stage', 'validation', '--yes')
    assert.match(replay.stdout, /^1 dead letter replayed; the run is open again, and `grasp run` goes on/)
    const reset = await run('reset', '--stage', 'filtering', '--to', 'beginning', '--yes', '--json')
    assert.equal(JSON.parse(reset.stdout).again, 4, reset.stderr)

    // Of four validations again and one that is new, in batches of four.
    const { updates, instances } = await runToEnd(tiny, '.')
    assert.equal(updates, 3)
    assert.equal(instances.kept, 5, 'those that were filtered again are the same questions')
    const { stages } = JSON.parse((await run('lag', '--json')).stdout)
    for (const { stage, group, lag, state } of stages)
      if (group !== null) assert.deepEqual([stage, lag, state], [stage, 0, 'complete'])

    const training = await run('reset', '--stage', 'training', '--to', 'beginning')
    assert.match(training.stderr, /There are: v00000\d \(slices from \d\).*v000003 \(slices from 9\)/)
    const scoring = await run('reset', '--stage', 'scoring', '--to', 'beginning')
    assert.match(scoring.stderr, /9 of the records of rollouts\/0 .* have been trained on/)
  } finally {
    await tiny.remove()
  }
})

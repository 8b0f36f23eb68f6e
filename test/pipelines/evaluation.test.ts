import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import pino from 'pino'
import { ignoreElements, lastValueFrom } from 'rxjs'
import { loadConfig } from '../../pipelines/config/load.ts'
import { evaluateSplit } from '../../pipelines/evaluation.ts'
import type { ProgressEvent } from '../../pipelines/events.ts'
import { ingest } from '../../pipelines/ingest.ts'
import { recorded } from '../../pipelines/judged.ts'
import { Resources } from '../../pipelines/resources.ts'
import { retrieval } from '../../pipelines/retrieval.ts'
import { makeTinyRun, type TinyRun } from '../helpers/tiny-run.ts'

let run: TinyRun
before(async () => {
  run = await makeTinyRun(4)
})
after(() => run.remove())

test('an evaluation that is to stop does so after the group at hand, and the next goes on from there', async () => {
  const cwd = join(run.folder, 'stopped')
  await mkdir(cwd)
  const config = loadConfig({ file: run.config, cwd })
  const request = { role: 'student', policy: 'teacher', policyVersion: 0, split: 'test' } as const

  /** Evaluates; aborts where it is told to. Returns how many answers the log then has. */
  async function evaluateUntil(abort: (event: ProgressEvent) => boolean): Promise<number> {
    const controller = new AbortController()
    const progress = (event: ProgressEvent) => abort(event) && controller.abort()
    const hooks = { signal: controller.signal, logger: pino({ level: 'silent' }), progress }
    await using resources = await Resources.open(config, hooks)
    await ingest(resources.stage)
    await lastValueFrom(retrieval(await resources.retrieval()).pipe(ignoreElements()), { defaultValue: null })
    const context = await resources.judged()
    if (controller.signal.aborted) throw new Error('aborted too early')
    const evaluation = evaluateSplit(context, request)
    await evaluation.catch(error => assert.equal(error.code, 'INTERRUPTED'))
    return (await recorded(context.log, request)).size
  }

  // Six held-out questions in groups of four.
  assert.equal(await evaluateUntil(event => event.kind === 'evaluation' && event.done === 4), 4)
  assert.equal(await evaluateUntil(() => false), 6)
})

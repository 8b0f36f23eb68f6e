import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import pino from 'pino'
import { ignoreElements, lastValueFrom } from 'rxjs'
import { GraspError } from '../../errors/grasp-error.ts'
import { loadConfig } from '../../pipelines/config/load.ts'
import type { JudgedContext } from '../../pipelines/context.ts'
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

/** Every held-out question is in the log, with its contexts. */
async function readyToJudge(resources: Resources): Promise<JudgedContext> {
  await ingest(resources.stage)
  await lastValueFrom(retrieval(await resources.retrieval()).pipe(ignoreElements()), { defaultValue: null })
  return resources.judged()
}

const request = { role: 'student', policy: 'teacher', policyVersion: 0, split: 'test' } as const

test('an evaluation that is to stop does so after the group at hand, and the next goes on from there', async () => {
  const cwd = join(run.folder, 'stopped')
  await mkdir(cwd)
  const config = loadConfig({ file: run.config, cwd })

  /** Evaluates; aborts where it is told to. Returns how many answers the log then has. */
  async function evaluateUntil(abort: (event: ProgressEvent) => boolean): Promise<number> {
    const controller = new AbortController()
    const progress = (event: ProgressEvent) => abort(event) && controller.abort()
    const hooks = { signal: controller.signal, logger: pino({ level: 'silent' }), progress }
    await using resources = await Resources.open(config, hooks)
    const context = await readyToJudge(resources)
    if (controller.signal.aborted) throw new Error('aborted too early')
    const evaluation = evaluateSplit(context, request)
    await evaluation.catch(error => assert.equal(error.code, 'INTERRUPTED'))
    return (await recorded(context.log, request)).size
  }

  // Six held-out questions in groups of four.
  assert.equal(await evaluateUntil(event => event.kind === 'evaluation' && event.done === 4), 4)
  assert.equal(await evaluateUntil(() => false), 6)
})

test('a group is cut short in the middle, nothing of it is stored, and the next gives what an undisturbed one gives', async () => {
  const long = ['evaluation.maxNewTokens=150', 'evaluation.batch=6']

  /** Evaluates; is stopped while the engine samples, where that is wanted. */
  async function evaluateIn(name: string, stopIt: boolean) {
    const cwd = join(run.folder, name)
    await mkdir(cwd, { recursive: true })
    const controller = new AbortController()
    const hooks = { signal: controller.signal, logger: pino({ level: 'silent' }), progress: () => {} }
    await using resources = await Resources.open(loadConfig({ file: run.config, cwd, set: long }), hooks)
    const context = await readyToJudge(resources)
    const { engine } = context
    const generate: typeof engine.generate = async (...of) => {
      const sampling = engine.generate(...of)
      // Answered between two passes: the engine is in the middle of it then.
      await engine.decode(Int32Array.of(5))
      if (stopIt) controller.abort()
      return sampling
    }
    const watched = new Proxy(engine, {
      get: (of, method) => (method === 'generate' ? generate : Reflect.get(of, method).bind(of)),
    })
    const evaluation = evaluateSplit({ ...context, engine: watched }, request)
    if (stopIt) {
      await assert.rejects(evaluation, { code: 'INTERRUPTED', message: /run "tiny" was stopped; the same/ })
    } else await evaluation
    return recorded(context.log, request)
  }

  assert.equal((await evaluateIn('cut short', true)).size, 0)
  const resumed = await evaluateIn('cut short', false)
  assert.equal(resumed.size, 6)
  assert.deepEqual(resumed, await evaluateIn('undisturbed', false))
})

test('a question that cannot be asked is told once, and asked when it can be', async () => {
  const cwd = join(run.folder, 'tried again')
  await mkdir(cwd)
  const hooks = {
    signal: new AbortController().signal,
    logger: pino({ level: 'silent' }),
    progress: () => {},
  }
  const config = loadConfig({ file: run.config, cwd, set: ['evaluation.batch=2'] })
  await using resources = await Resources.open(config, hooks)
  const context = await readyToJudge(resources)
  const student: typeof context.prompt.student = of => {
    // Two that are a group, and one of another.
    if (['h0', 'h1', 'h5'].includes(of.id)) throw new GraspError('PROMPT_TOO_LONG', 'it cannot be asked')
    return context.prompt.student(of)
  }
  const prompt = Object.assign(Object.create(context.prompt), { student })
  const letters = async () =>
    (await context.log.topics()).find(({ topic }) => topic === 'deadletters')!.ends[0]
  for (let time = 0; time < 2; time++) {
    await evaluateSplit({ ...context, prompt }, request)
    assert.deepEqual([...(await recorded(context.log, request)).keys()], ['h2', 'h3', 'h4'])
    assert.equal(await letters(), 3)
  }
  await evaluateSplit(context, request)
  assert.equal((await recorded(context.log, request)).size, 6)
})

test('a question that cannot be asked is not counted among those of the score', async () => {
  const cwd = join(run.folder, 'unasked')
  await mkdir(cwd)
  const events: ProgressEvent[] = []
  const hooks = {
    signal: new AbortController().signal,
    logger: pino({ level: 'silent' }),
    progress: (event: ProgressEvent) => void events.push(event),
  }
  await using resources = await Resources.open(loadConfig({ file: run.config, cwd }), hooks)
  const context = await readyToJudge(resources)
  let asked = 0
  const student: typeof context.prompt.student = of => {
    if (asked++ === 1) throw new GraspError('PROMPT_TOO_LONG', 'one that cannot be asked')
    return context.prompt.student(of)
  }
  const prompt = Object.assign(Object.create(context.prompt), { student })
  await evaluateSplit({ ...context, prompt }, request)
  const scored = events.filter(event => event.kind === 'evaluation' && event.score !== undefined)
  assert.deepEqual(
    scored.map(event => event.kind === 'evaluation' && [event.done, event.total]),
    [[5, 5]],
  )
})

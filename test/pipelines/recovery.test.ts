/** The engine's process dies under a command: the same command ends as one that nobody disturbed. */
import assert from 'node:assert/strict'
import { watch } from 'node:fs'
import { mkdir, readFile, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import pino from 'pino'
import { openLmdbLog } from '../../bus/lmdb/log.ts'
import { firstFailure } from '../../errors/first-failure.ts'
import { loadConfig } from '../../pipelines/config/load.ts'
import { evaluatePolicy } from '../../pipelines/eval.ts'
import type { ProgressEvent } from '../../pipelines/events.ts'
import type { RunResult } from '../../pipelines/result.ts'
import { runPipeline } from '../../pipelines/run.ts'
import { canFindEngines, enginesOf } from '../helpers/engine-processes.ts'
import { writeTinyModel } from '../helpers/tiny-model.ts'
import { makeTinyRun, type TinyRun } from '../helpers/tiny-run.ts'

let run: TinyRun

interface Attempt {
  readonly config: ReturnType<typeof configOf>
  readonly warnings: readonly string[]
  readonly deaths: number
  readonly outcome: PromiseSettledResult<RunResult>
}

/** What is to be done when: the engine of this process is sent the signal at the first event that fits. */
type Blow = readonly [NodeJS.Signals, (event: ProgressEvent) => boolean]

function configOf(where: string, settings: readonly string[]) {
  const folder = join(run.folder, where)
  const places = [`log.path=${folder}/logs`, `output.path=${folder}/output`]
  return loadConfig({ file: run.config, set: [...places, ...settings] })
}

/** Runs in this process, so that a blow falls at the very event. */
async function attempt(
  where: string,
  settings: readonly string[] = [],
  onEvent: (event: ProgressEvent, controller: AbortController) => void = () => {},
): Promise<Attempt> {
  const config = configOf(where, settings)
  const controller = new AbortController()
  const warnings: string[] = []
  let deaths = 0
  const logger = pino({ level: 'warn' }, { write: line => warnings.push(JSON.parse(line).msg) })
  const progress = (event: ProgressEvent) => {
    if (event.kind === 'recovery') deaths = event.deaths
    onEvent(event, controller)
  }
  const hooks = { logger, progress, signal: controller.signal }
  const [outcome] = await Promise.allSettled([runPipeline(config, hooks)])
  return { config, warnings, deaths, outcome: outcome! }
}

function strike(signal: NodeJS.Signals): void {
  for (const id of enginesOf(process.pid)) process.kill(id, signal)
}

/** Each blow once, in their order, to an engine of its own. */
function blows(list: readonly Blow[]): (event: ProgressEvent) => void {
  const left = [...list]
  let dying = false
  return event => {
    if (event.kind === 'recovery') dying = false
    if (dying || !left[0]?.[1](event)) return
    strike(left.shift()![0])
    dying = true
  }
}

const committed = (stage: string) => (event: ProgressEvent) => event.kind === 'stage' && event.stage === stage
const updated = (version: number) => (event: ProgressEvent) =>
  event.kind === 'update' && event.version === version
const answered = (role: string) => (event: ProgressEvent) =>
  event.kind === 'evaluation' && event.role === role && event.done < event.total

function resultOf({ outcome }: Attempt): RunResult {
  if (outcome.status === 'rejected') throw firstFailure(outcome.reason)
  return outcome.value
}

async function counts({ config }: Attempt): Promise<Record<string, number>> {
  const log = await openLmdbLog({ path: config.log.path, run: config.run, readOnly: true })
  try {
    return Object.fromEntries((await log.topics()).map(({ topic, ends }) => [topic, ends[0]!]))
  } finally {
    await log.close()
  }
}

async function sameAs(whole: Attempt, disturbed: Attempt): Promise<void> {
  const { seconds: _, policy, ...result } = resultOf(disturbed)
  const { seconds: __, policy: expected, ...rest } = resultOf(whole)
  assert.equal(policy.weightsHash, expected.weightsHash)
  assert.equal(policy.version, expected.version)
  assert.deepEqual(result, rest)
  assert.deepEqual(await counts(disturbed), await counts(whole))
}

async function metricsOf({ config }: Attempt): Promise<Record<string, unknown>[]> {
  const text = await readFile(join(config.output.path, 'metrics.jsonl'), 'utf8')
  return text
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
}

describe('the death of the engine under a run', { skip: !canFindEngines && 'reads /proc' }, () => {
  let whole: Attempt
  before(async () => {
    run = await makeTinyRun()
    whole = await attempt('whole')
    assert.equal(whole.deaths, 0)
  })
  after(() => run.remove())

  test('at every stage: the same weights, every record once, each death told and counted', async () => {
    const list: Blow[] = [
      ['SIGKILL', committed('validation')],
      ['SIGSEGV', committed('rollout')],
      ['SIGKILL', committed('scoring')],
      ['SIGABRT', updated(2)],
      ['SIGKILL', updated(5)],
      ['SIGKILL', answered('grasp')],
    ]
    const disturbed = await attempt('every stage', ['engine.restarts=6'], blows(list))
    await sameAs(whole, disturbed)
    assert.equal(disturbed.deaths, 6)
    const told = disturbed.warnings.filter(line => line.includes("the engine's process"))
    assert.equal(told.length, 6)
    assert.match(
      told[0]!,
      /was killed \(SIGKILL\), most often because memory ran out, while it .* starts anew in 1 s/,
    )
    assert.match(
      told[1]!,
      /died of SIGSEGV, a fault in native code, while it .*last checkpoint have \(death 2 of the 6 /,
    )
    const metrics = await metricsOf(disturbed)
    const versions = metrics.filter(({ event }) => event === undefined).map(({ version }) => version)
    assert.deepEqual(versions, [1, 2, 3, 4, 5, 6])
    const deaths = metrics.filter(({ event }) => event === 'engine-died')
    assert.deepEqual(
      deaths.map(({ deaths: count }) => count),
      [1, 2, 3, 4, 5, 6],
    )
    assert.match(String(deaths[1]!.cause), /SIGSEGV/)
  })

  test('where rollouts run ahead of the trainer', async () => {
    const lag = ['rollout.lag=2']
    const ahead = await attempt('ahead', lag)
    const list: Blow[] = [
      ['SIGKILL', updated(2)],
      ['SIGKILL', updated(4)],
    ]
    const disturbed = await attempt('ahead, disturbed', lag, blows(list))
    await sameAs(ahead, disturbed)
    assert.equal(disturbed.deaths, 2)
  })

  test('while it saves a checkpoint', async () => {
    const settings = ['training.checkpointEvery=1']
    const folder = join(run.folder, 'saving/output/checkpoints')
    await mkdir(folder, { recursive: true })
    let killed = 0
    const watcher = watch(folder, (_, name) => {
      if (killed > 3 || !name?.endsWith('.writing') || enginesOf(process.pid).length === 0) return
      killed++
      strike('SIGKILL')
    })
    const saving = await attempt('saving', settings).finally(() => watcher.close())
    assert.ok(
      saving.warnings.some(line => line.includes('while it saved the checkpoint')),
      saving.warnings.join('\n'),
    )
    assert.equal(resultOf(saving).policy.weightsHash, resultOf(whole).policy.weightsHash)
  })

  test('by hanging: it is killed, and that is told', async () => {
    const disturbed = await attempt('hanging', ['engine.hangSeconds=3'], blows([['SIGSTOP', updated(2)]]))
    await sameAs(whole, disturbed)
    assert.match(disturbed.warnings[0]!, /the engine's process gave no sign of life for 3 s while it/)
  })

  test('again and again: after as many as are allowed the run ends and says so; the next one goes on', async () => {
    const each = (event: ProgressEvent) => {
      if (event.kind === 'phase' && event.name === 'training') strike('SIGKILL')
    }
    const { outcome, deaths } = await attempt('again and again', ['engine.restarts=2'], each)
    assert.equal(deaths, 2)
    assert.ok(outcome.status === 'rejected')
    assert.equal(outcome.reason.code, 'ENGINE_DIED')
    assert.match(
      outcome.reason.message,
      /SIGKILL.* It died 3 times .*engine\.restarts = 2.*same command goes on/,
    )
    await sameAs(whole, await attempt('again and again'))
  })

  test('while it loads the model', async () => {
    const timer = setInterval(() => strike('SIGKILL'), 5)
    const { outcome, deaths } = await attempt('loading', ['engine.restarts=1']).finally(() =>
      clearInterval(timer),
    )
    assert.equal(deaths, 1)
    assert.ok(outcome.status === 'rejected')
    assert.equal(outcome.reason.code, 'ENGINE_DIED')
    assert.match(outcome.reason.message, /while it loaded the model .*died 2 times without anything gained/)
  })

  test('is not what a damaged model is: that is an error at once', async () => {
    await writeTinyModel(join(run.folder, 'damaged'))
    await truncate(join(run.folder, 'damaged/model.safetensors'), 5000)
    const { outcome, deaths } = await attempt('damage', [`model.path=${join(run.folder, 'damaged')}`])
    assert.equal(deaths, 0)
    assert.ok(outcome.status === 'rejected')
    assert.equal(outcome.reason.code, 'MODEL_INVALID')
  })

  for (const [how, stops] of [
    ['while it recovers', (event: ProgressEvent) => event.kind === 'recovery'],
    ['before it dies', updated(2)],
  ] as const) {
    test(`a Ctrl-C ${how} ends the run in good order`, async () => {
      const blow = blows([['SIGKILL', updated(2)]])
      const where = `stopped ${how}`
      const { outcome } = await attempt(where, [], (event, controller) => {
        if (stops(event)) controller.abort()
        blow(event)
      })
      assert.ok(outcome.status === 'rejected')
      assert.equal(outcome.reason.code, 'INTERRUPTED')
      assert.match(outcome.reason.message, /stopped after its engine died.*SIGKILL.*same command goes on/)
      await sameAs(whole, await attempt(where))
    })
  }

  test('under an evaluation of its own', async () => {
    const deaths: number[] = []
    const timer = setInterval(() => {
      if (enginesOf(process.pid).length === 0) return
      clearInterval(timer)
      strike('SIGKILL')
    }, 5)
    const hooks = {
      signal: new AbortController().signal,
      logger: pino({ level: 'silent' }),
      progress: (event: ProgressEvent) => {
        if (event.kind === 'recovery') deaths.push(event.deaths)
      },
    }
    const options = { policy: 'teacher', split: 'validation' } as const
    const { scored } = await evaluatePolicy(whole.config, options, hooks)
    assert.equal(scored, 4)
    assert.deepEqual(deaths, [1])
  })
})

/** The engine of each stage's process dies while the stages work side by side, on the embedded log and on Kafka. */
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { openKafkaLog } from '../../bus/kafka/log.ts'
import { openLmdbLog } from '../../bus/lmdb/log.ts'
import type { Log } from '../../bus/port.ts'
import type { Config } from '../../pipelines/config/config.ts'
import { loadConfig } from '../../pipelines/config/load.ts'
import type { ProgressEvent, RunHooks } from '../../pipelines/events.ts'
import type { RunResult } from '../../pipelines/result.ts'
import { runStageProcess } from '../../pipelines/run-one.ts'
import type { StageName } from '../../pipelines/topology.ts'
import { TOPICS } from '../../schemas/types.ts'
import { canFindEngines, enginesOf } from '../helpers/engine-processes.ts'
import { findKafka } from '../helpers/kafka-broker.ts'
import { makeTinyRun, runToEnd, type TinyRun } from '../helpers/tiny-run.ts'

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
const kafka = await findKafka()
const name = `died-${process.pid}-${Date.now()}`

let run: TinyRun
let whole: Awaited<ReturnType<typeof runToEnd>>
let expected: Record<string, number>
before(async () => {
  run = await makeTinyRun(12)
  await mkdir(join(run.folder, 'whole'))
  whole = await runToEnd(run, 'whole')
  expected = await counts(await embedded('whole', 'tiny'))
})
after(async () => {
  await run.remove()
  if (kafka.brokers !== undefined) await kafka.release()
})

const embedded = (where: string, of: string) =>
  openLmdbLog({ path: join(run.folder, where, '.grasp/logs'), run: of, readOnly: true })

/** Records by topic, but for `policies`, in which stages that are processes of their own publish more. */
async function counts(log: Log): Promise<Record<string, number>> {
  const found: Record<string, number> = {}
  try {
    for (const topic of TOPICS) {
      if (topic === 'policies') continue
      found[topic] = 0
      for await (const _ of log.scan(topic)) found[topic]++
    }
  } finally {
    await log.close()
  }
  return found
}

type Blow = (event: ProgressEvent) => boolean
const committed = (stage: string) => (event: ProgressEvent) => event.kind === 'stage' && event.stage === stage

/** When the engine of which stage is killed, once. */
const BLOWS: Readonly<Partial<Record<StageName, Blow>>> = {
  validation: committed('validation'),
  rollout: committed('rollout'),
  scoring: committed('scoring'),
  training: event => event.kind === 'update' && event.version === 2,
  evaluation: event => event.kind === 'evaluation' && event.role === 'teacher' && event.done < event.total,
}

/** A stage with hooks of its own, in this process, so that the blow falls at the very event. */
function startStage(config: Config, stage: StageName, blow: Blow | undefined) {
  const warnings: string[] = []
  let engine: number | undefined
  const hooks: RunHooks = {
    logger: pino({ level: 'warn' }, { write: line => warnings.push(JSON.parse(line).msg) }),
    signal: new AbortController().signal,
    progress: event => {
      if (engine === undefined || !blow?.(event)) return
      process.kill(engine, 'SIGKILL')
      engine = undefined
    },
  }
  const before = enginesOf(process.pid)
  const running = runStageProcess(config, stage, hooks)
  const opened = async () => {
    while (engine === undefined) {
      await sleep(5)
      engine = enginesOf(process.pid).find(id => !before.includes(id))
    }
  }
  return { stage, warnings, running, opened }
}

async function runStages(where: string, settings: readonly string[]) {
  const folder = join(run.folder, where, '.grasp')
  const places = [`log.path=${folder}/logs`, `output.path=${folder}/tiny`]
  const config = loadConfig({ file: run.config, set: [...places, ...settings] })
  const started: ReturnType<typeof startStage>[] = []
  // What has the models first, one after the other, so that it is known whose engine is whose.
  for (const stage of ['evaluation', 'training', 'scoring', 'rollout', 'validation'] as const) {
    const next = startStage(config, stage, BLOWS[stage])
    started.push(next)
    await next.opened()
  }
  for (const stage of ['filtering', 'retrieval', 'ingest'] as const) {
    started.push(startStage(config, stage, undefined))
  }
  const [result] = (await Promise.all(started.map(({ running }) => running))) as [RunResult]
  for (const { stage, warnings } of started) {
    const deaths = warnings.filter(line => line.includes("the engine's process was killed"))
    assert.equal(deaths.length, stage in BLOWS ? 1 : 0, `${stage}: ${warnings.join('\n')}`)
  }
  assert.equal(result.policy.weightsHash, whole.policy.weightsHash)
  assert.deepEqual(result.scores, whole.scores)
  assert.deepEqual(result.kl, whole.kl)
}

describe('engines of stages die', { skip: !canFindEngines && 'reads /proc' }, () => {
  test('on the embedded log: the same weights, every record once', async () => {
    await runStages('embedded', [])
    assert.deepEqual(await counts(await embedded('embedded', 'tiny')), expected)
  })

  const options = kafka.brokers === undefined ? { skip: kafka.skip } : {}
  test('on Kafka: the same weights, every record once', options, async () => {
    const brokers = kafka.brokers!
    await runStages('kafka', [`run=${name}`, 'log.kind=kafka', `log.brokers=${brokers.join(',')}`])
    assert.deepEqual(await counts(await openKafkaLog({ brokers, run: name, readOnly: true })), expected)
  })
})

/** The engine of each stage's process dies while the stages work side by side, on the embedded log and on Kafka. */
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openKafkaLog } from '../../bus/kafka/log.ts'
import { openLmdbLog } from '../../bus/lmdb/log.ts'
import type { Log } from '../../bus/port.ts'
import { TOPICS } from '../../schemas/types.ts'
import { canFindEngines, enginesOf } from '../helpers/engine-processes.ts'
import { findKafka } from '../helpers/kafka-broker.ts'
import { grasp, makeTinyRun, type Outcome, runToEnd, type TinyRun } from '../helpers/tiny-run.ts'

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

/** When the engine of which stage is killed: once, when this was said. */
const BLOWS: Readonly<Record<string, RegExp>> = {
  validation: /"stage":"validation".*"committed"/,
  rollout: /"stage":"rollout".*"committed"/,
  scoring: /"stage":"scoring".*"committed"/,
  training: /"version":2,.*"update"/,
  evaluation: /evaluation/,
}

/** Runs a stage; its engine is killed once where it has one. */
async function runStage(stage: string, where: string, sets: readonly string[]): Promise<Outcome> {
  const blow = BLOWS[stage]
  let [said, parent] = ['', 0]
  const timer = setInterval(() => {
    const engine = parent > 0 && blow?.test(said) ? enginesOf(parent)[0] : undefined
    if (engine === undefined) return
    clearInterval(timer)
    process.kill(engine, 'SIGKILL')
  }, 5)
  const args = ['run', stage, '--config', run.config, '--json', '--log-level', 'debug', ...sets]
  const watch = (stderr: string, _: unknown, pid: number) => {
    said = stderr
    parent = pid
  }
  return grasp(args, { cwd: where, watch }).finally(() => clearInterval(timer))
}

async function runStages(where: string, settings: readonly string[]) {
  const folder = join(run.folder, where)
  await mkdir(folder)
  const sets = settings.flatMap(setting => ['--set', setting])
  const stages = ['ingest', 'retrieval', 'filtering', ...Object.keys(BLOWS)]
  const outcomes = await Promise.all(stages.map(stage => runStage(stage, folder, sets)))
  outcomes.forEach(({ code, stderr }, i) => {
    assert.equal(code, 0, `${stages[i]}: ${stderr}`)
    const deaths = stderr.match(/"level":40.*the engine's process was killed/g) ?? []
    assert.equal(deaths.length, stages[i]! in BLOWS ? 1 : 0, `${stages[i]}: ${stderr}`)
  })
  const { result } = JSON.parse(outcomes.at(-1)!.stdout)
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

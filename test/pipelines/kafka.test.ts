/** The same pipelines on a real Kafka: the same weights, and every kept instance once. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { openKafkaLog } from '../../bus/kafka/log.ts'
import { loadConfig } from '../../pipelines/config/load.ts'
import { openRunLog } from '../../pipelines/run-log.ts'
import { findKafka } from '../helpers/kafka-broker.ts'
import { grasp, makeTinyRun, runToEnd, type TinyRun } from '../helpers/tiny-run.ts'

const kafka = await findKafka()
const options = kafka.brokers === undefined ? { skip: kafka.skip } : {}
/** Topics of earlier tests may still be there. */
const mark = `${process.pid}-${Date.now()}`

let run: TinyRun
before(async () => {
  run = await makeTinyRun(12)
})
after(async () => {
  await run.remove()
  if (kafka.brokers !== undefined) await kafka.release()
})

const onKafka = (name: string, ...more: string[]) => [
  `run=${name}-${mark}`,
  'log.kind=kafka',
  `log.brokers=${kafka.brokers?.join(',')}`,
  ...more,
]

async function folder(name: string): Promise<string> {
  await mkdir(join(run.folder, name), { recursive: true })
  return name
}

test('a run on Kafka ends in the weights of a run on the embedded log', options, async () => {
  const embedded = await runToEnd(run, await folder('embedded'))
  const clustered = await runToEnd(run, await folder('kafka'), onKafka('one'))
  assert.equal(clustered.policy.weightsHash, embedded.policy.weightsHash)
  assert.deepEqual(clustered.scores, embedded.scores)
  assert.deepEqual(clustered.instances, embedded.instances)
  assert.equal(clustered.updates, embedded.updates)
})

test('several partitions: every kept instance is trained on exactly once', options, async () => {
  const settings = onKafka('three', 'log.partitions=3')
  const { instances } = await runToEnd(run, await folder('partitions'), settings)
  assert.deepEqual(instances, { seen: 12, kept: 12 })
  const log = await openKafkaLog({ brokers: kafka.brokers!, run: `three-${mark}`, readOnly: true })
  try {
    const trained: string[] = []
    for await (const { value } of log.scan('updates')) trained.push(...value!.instances)
    assert.deepEqual(trained.sort(), Array.from({ length: 12 }, (_, i) => `t${i}`).sort())
  } finally {
    await log.close()
  }
})

test('stages as processes share a run on Kafka, two workers of one stage among them', options, async () => {
  const embedded = await runToEnd(run, await folder('embedded'))
  const where = join(run.folder, await folder('processes'))
  const sets = onKafka('stages').flatMap(setting => ['--set', setting])
  const stages = [
    'ingest',
    'retrieval',
    'validation',
    'filtering',
    'rollout',
    'rollout',
    'scoring',
    'training',
    'evaluation',
  ]
  const outcomes = await Promise.all(
    stages.map(stage => grasp(['run', stage, '--config', run.config, '--json', ...sets], { cwd: where })),
  )
  for (const [i, { code, stderr }] of outcomes.entries()) assert.equal(code, 0, `${stages[i]}: ${stderr}`)
  const { result } = JSON.parse(outcomes.at(-1)!.stdout)
  assert.equal(result.policy.weightsHash, embedded.policy.weightsHash)
})

test(
  'a command that starts before its broker is there waits a little, unless it is to stop',
  options,
  async () => {
    const [host, port] = kafka.brokers![0]!.split(':') as [string, string]
    const door = createServer(socket => {
      const inside = connect(Number(port), host)
      socket.on('error', () => inside.destroy()).pipe(inside)
      inside.on('error', () => socket.destroy()).pipe(socket)
    })
    const listen = async (at: number) => {
      door.listen(at, '127.0.0.1')
      await once(door, 'listening')
      return (door.address() as AddressInfo).port
    }
    // An address where nobody answers yet.
    const free = await listen(0)
    door.close()
    const set = onKafka('waits', `log.brokers=127.0.0.1:${free}`)
    const config = loadConfig({ file: run.config, set })
    const away = { code: 'LOG_UNAVAILABLE', message: /cannot reach/ }
    await assert.rejects(openRunLog(config, { stopped: () => true }), away)
    await assert.rejects(openRunLog(config, { patience: 0 }), away)

    const opening = openRunLog(config)
    await setTimeout(4000)
    await listen(free)
    try {
      await (await opening).close()
    } finally {
      door.close()
    }
  },
)

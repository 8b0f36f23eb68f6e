/** From the configuration to the log. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import kafkajs from 'kafkajs'
import { Names } from '../../bus/kafka/names.ts'
import { configIdentity, identityHash } from '../../pipelines/config/identity.ts'
import { loadConfig } from '../../pipelines/config/load.ts'
import { openClaimedLog, openRunLog } from '../../pipelines/run-log.ts'
import { withAdmin } from '../bus/kafka/harness.ts'
import { questions, until } from '../bus/samples.ts'
import { findKafka } from '../helpers/kafka-broker.ts'

const kafka = await findKafka()
const options = kafka.brokers ? {} : { skip: kafka.skip }
const brokers = kafka.brokers ?? []
if (kafka.brokers) after(() => kafka.release())

test(
  'retention, replicas and timeouts of the configuration reach the cluster and the reader',
  options,
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'grasp-run-log-'))
    const run = `r${process.pid}-${Date.now()}`
    try {
      const lines = ['model: { path: m }', 'data: { train: t.json }', 'judge: { kind: lexical }']
      await writeFile(join(folder, 'grasp.yaml'), `run: ${run}\n${lines.join('\n')}\n`)
      const set = [
        'log.kind=kafka',
        `log.brokers=${brokers.join(',')}`,
        'log.partitions=2',
        'log.replication=1',
        'log.retentionHours=7',
        'log.timeouts.stuck=1000',
        'log.timeouts.session=6000',
      ]
      const log = await openRunLog(loadConfig({ cwd: folder, set }))
      try {
        assert.equal((await log.topics()).find(({ topic }) => topic === 'questions')!.partitions, 2)
        const name = new Names('grasp', run).topic('questions')
        const { resources } = await withAdmin(brokers, admin =>
          admin.describeConfigs({
            includeSynonyms: false,
            resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name, configNames: ['retention.ms'] }],
          }),
        )
        assert.equal(resources[0]!.configEntries[0]!.configValue, String(7 * 3_600_000))
        await log.append(questions(1))
        let held = 0
        const reading = log.read('questions', {
          group: 'g',
          credits: { records: 1, bytes: 1 },
          until: 'never',
        })
        const failed = assert.rejects(
          reading.forEach(() => void held++),
          {
            code: 'STAGE_FAILED',
            message: /raise log\.timeouts\.stuck/,
          },
        )
        await until(() => held === 1)
        await failed
      } finally {
        await log.close()
      }
    } finally {
      await withAdmin(brokers, async admin => {
        const topics = (await admin.listTopics()).filter(topic => topic.startsWith(`grasp.${run}.`))
        await admin.deleteTopics({ topics })
      })
      await rm(folder, { recursive: true })
    }
  },
)

test('a log written before a configuration key existed keeps the identity that its checkpoints name', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'grasp-run-log-'))
  try {
    const lines = ['model: { path: m }', 'data: { train: t.json }', 'judge: { kind: lexical }']
    await writeFile(join(folder, 'grasp.yaml'), `${lines.join('\n')}\n`)
    await writeFile(join(folder, 't.json'), '[]')
    const config = loadConfig({ cwd: folder, set: ['run=older'] })
    const { 'training.lora.rank': rank, ...older } = await configIdentity(config)
    assert.notEqual(rank, undefined)
    const log = await openRunLog(config)
    await log.setNote('identity', JSON.stringify(older))
    await log.append(questions(1))
    await log.close()

    const claimed = await openClaimedLog(config)
    await claimed.log.close()
    assert.equal(identityHash(claimed.identity), identityHash(older))
  } finally {
    await rm(folder, { recursive: true })
  }
})

/** The commands for operating a run, on Kafka. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, afterEach, beforeEach, describe, it } from 'node:test'
import { withAdmin } from '../../bus/kafka/harness.ts'
import { findKafka } from '../../helpers/kafka-broker.ts'
import { CONFIG, item, Workspace } from '../grasp.ts'
import { graspHere } from '../in-process.ts'
import { describeOperating } from './operating-cases.ts'

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
const kafka = await findKafka()

if (kafka.brokers) {
  const { brokers } = kafka
  const prefixes: string[] = []
  const settingsOf = () => {
    const prefix = `cli-${randomUUID().slice(0, 8)}`
    prefixes.push(prefix)
    return {
      prefix,
      settings: ['log.kind=kafka', `log.brokers=${brokers.join(',')}`, `log.prefix=${prefix}`],
    }
  }
  after(async () => {
    await withAdmin(brokers, async admin => {
      const own = (topic: string) => prefixes.some(prefix => topic.startsWith(`${prefix}.`))
      await admin.deleteTopics({ topics: (await admin.listTopics()).filter(own) })
    })
    await kafka.release()
  })
  describeOperating('Kafka', settingsOf())
  describe('Kafka: topics of a run', () => describeTopics(brokers, settingsOf))
} else {
  describe('Kafka: operating a run', () => {
    it('works', { skip: kafka.skip }, () => {})
  })
}

function describeTopics(
  brokers: readonly string[],
  settingsOf: () => { readonly prefix: string; readonly settings: readonly string[] },
): void {
  let workspace: Workspace
  let prefix: string
  let set: string[]
  beforeEach(() => {
    workspace = new Workspace()
    workspace.write('grasp.yaml', CONFIG)
    workspace.write(
      'train.json',
      Array.from({ length: 12 }, (_, i) => item(`q${i}`)),
    )
    const own = settingsOf()
    prefix = own.prefix
    set = own.settings.flatMap(setting => ['--set', setting])
  })
  afterEach(() => workspace[Symbol.dispose]())

  const grasp = (...args: string[]) => graspHere([...args, ...set], { cwd: workspace.path })
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await grasp(...args, '--json')
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout)
  }

  it('are made with the partitions and settings of the configuration, and only what is missing', async () => {
    const sets = ['--set', 'log.partitions=3', '--set', 'log.retentionHours=48']
    const made = await grasp('topics', 'create', ...sets)
    assert.equal(made.code, 0, made.stderr)
    assert.match(made.stdout, /^questions +3 +created$/m)
    await withAdmin(brokers, async admin => {
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: [
          { type: 2, name: `${prefix}.t.questions`, configNames: ['retention.ms', 'cleanup.policy'] },
        ],
      })
      const values = Object.fromEntries(
        resources[0]!.configEntries.map(({ configName, configValue }) => [configName, configValue]),
      )
      assert.deepEqual(values, { 'retention.ms': String(48 * 3_600_000), 'cleanup.policy': 'delete' })
      await admin.deleteTopics({ topics: [`${prefix}.t.slices`] })
    })
    const again = await json('topics', 'create', ...sets)
    const created = again.topics.filter((info: { created: boolean }) => info.created)
    assert.deepEqual(
      created.map(({ topic }: { topic: string }) => topic),
      ['slices'],
    )
    assert.equal(again.created, 1)
  })

  it('that have other settings than the configuration are told, with both and what to do', async () => {
    await json('topics', 'create', '--set', 'log.partitions=2')
    const cases: [string, RegExp][] = [
      [
        'log.partitions=4',
        /^error LOG_MISMATCH: topic cli-\S+: partitions is 2, expected 4; set log\.partitions to 2, or start/m,
      ],
      ['log.partitions=1', /partitions is 2, expected 1; set log\.partitions to 2/],
      [
        'log.retentionHours=1',
        /retention\.ms is -1, expected 3600000; set it with Kafka's tools \(kafka-configs/,
      ],
    ]
    for (const [setting, message] of cases) {
      const more = setting.startsWith('log.partitions') ? [] : ['--set', 'log.partitions=2']
      for (const command of [['topics', 'create'], ['topics', 'list'], ['ingest']]) {
        const { code, stderr } = await grasp(...command, ...more, '--set', setting)
        assert.match(stderr, message)
        assert.equal(code, 1)
      }
    }
  })

  it('with several partitions: records of all, one, and positions by partition', async () => {
    const several = ['--set', 'log.partitions=3']
    assert.equal((await grasp('ingest', ...several)).code, 0)
    const { topics } = await json('topics', 'list', ...several)
    const questions = topics.find(({ topic }: { topic: string }) => topic === 'questions')
    assert.deepEqual([questions.partitions, questions.sealed], [3, true])
    assert.equal((await grasp('topics', 'count', 'questions', ...several)).stdout, '12\n')
    const counts = []
    for (const partition of ['0', '1', '2'])
      counts.push(
        Number((await grasp('topics', 'count', 'questions', '--partition', partition, ...several)).stdout),
      )
    assert.equal(
      counts.reduce((sum, count) => sum + count),
      12,
    )
    assert.ok(counts.filter(count => count > 0).length > 1)
    const { stages } = await json('lag', '--exact', ...several)
    const retrieval = stages.find(({ stage }: { stage: string }) => stage === 'retrieval')
    assert.deepEqual(
      retrieval.partitions.map(({ lag }: { lag: number }) => lag),
      counts,
    )
    const reset = await grasp('reset', '--stage', 'retrieval', '--to', '0', ...several)
    assert.match(reset.stderr, /questions has 3 partitions; say which with --partition/)
  })
}

import type { TopicInfo } from '../../bus/port.ts'
import { countRecords } from '../../pipelines/operate/records.ts'
import { openRunLog } from '../../pipelines/run-log.ts'
import { TOPOLOGY } from '../../pipelines/topology.ts'
import type { Topic } from '../../schemas/types.ts'
import type { Session } from '../session.ts'
import { table } from '../table.ts'
import { topicNamed } from './arguments.ts'

/** In the order of the pipeline, dead letters last. */
const ORDER: readonly Topic[] = [...TOPOLOGY.flatMap(({ writes }) => writes), 'deadletters']

const ordered = <T extends TopicInfo>(topics: readonly T[]): T[] =>
  [...topics].sort((a, b) => ORDER.indexOf(a.topic) - ORDER.indexOf(b.topic))

export async function listTopics(session: Session): Promise<void> {
  const config = await session.config()
  const log = await openRunLog(config, { readOnly: true })
  try {
    const topics = []
    for (const info of ordered(await log.topics()))
      topics.push({ ...info, records: log.contiguous ? await countRecords(log, info) : null })
    // Where offsets have gaps, only reading tells how many records there are.
    const amount = log.contiguous ? 'records' : 'offsets'
    const end = (info: TopicInfo) => info.ends.reduce((sum, offset) => sum + offset, 0)
    const rows = topics.map(info => [
      info.topic,
      String(info.records ?? end(info)),
      String(info.partitions),
      info.sealed ? 'complete' : 'open',
    ])
    const text = table([['topic', amount, 'partitions', 'state'], ...rows])
    const note = '\nTransactions take offsets too; `grasp topics count` counts the records.\n'
    session.result({ run: config.run, topics }, log.contiguous ? text : text + note)
  } finally {
    await log.close()
  }
}

export async function createTopicsCommand(session: Session): Promise<void> {
  const config = await session.config()
  const { createTopics } = await import('../../pipelines/operate/create.ts')
  const topics = ordered(await createTopics(config))
  const made = topics.filter(({ created }) => created).length
  const rows = topics.map(({ topic, partitions, created }) => [
    topic,
    String(partitions),
    created ? 'created' : 'was there',
  ])
  const text = table([['topic', 'partitions', ''], ...rows])
  const note = `\nThe embedded log in ${config.log.path} makes its topics when it is first opened; \`grasp run\` does that too.\n`
  session.result(
    { run: config.run, created: made, topics },
    config.log.kind === 'embedded' ? text + note : text,
  )
}

interface CountOptions {
  readonly where?: readonly string[]
  readonly key?: string
  readonly partition?: number
}

export async function countTopics(session: Session, options: CountOptions, name?: string): Promise<void> {
  const only = name === undefined ? undefined : topicNamed(name)
  const { where = [], key, partition } = options
  const { recordFilter } = await import('../../pipelines/operate/where.ts')
  const config = await session.config()
  const log = await openRunLog(config, { readOnly: true })
  try {
    const counts: { topic: Topic; records: number }[] = []
    for (const { topic } of ordered(await log.topics())) {
      if (only !== undefined && topic !== only) continue
      const filter = where.length > 0 ? recordFilter(topic, where) : undefined
      counts.push({ topic, records: await countRecords(log, { topic, key, partition, filter }) })
    }
    const rows = counts.map(({ topic, records }) => [topic, String(records)])
    const text = only === undefined ? table([['topic', 'records'], ...rows]) : `${counts[0]?.records ?? 0}\n`
    session.result({ run: config.run, counts }, text)
  } finally {
    await log.close()
  }
}

import { setTimeout } from 'node:timers/promises'
import type { Delivery, Log, TopicInfo } from '../../bus/port.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import { nearest } from '../../pipelines/config/suggest.ts'
import { openRunLog } from '../../pipelines/run-log.ts'
import { TOPOLOGY } from '../../pipelines/topology.ts'
import { TOPICS, type Topic } from '../../schemas/types.ts'
import { recordDocument } from '../record-document.ts'
import type { Session } from '../session.ts'
import { table } from '../table.ts'

/** In the order of the pipeline, dead letters last. */
const ORDER: readonly Topic[] = [...TOPOLOGY.flatMap(({ writes }) => writes), 'deadletters']

export async function listTopics(session: Session): Promise<void> {
  const config = await session.config()
  const log = await openRunLog(config, { readOnly: true })
  try {
    const topics = (await log.topics()).sort((a, b) => ORDER.indexOf(a.topic) - ORDER.indexOf(b.topic))
    const records = (info: TopicInfo) => info.ends.reduce((sum, end) => sum + end, 0)
    const rows = topics.map(info => [
      info.topic,
      String(records(info)),
      String(info.partitions),
      info.sealed ? 'complete' : 'open',
    ])
    session.result(
      { run: config.run, topics: topics.map(info => ({ ...info, records: records(info) })) },
      table([['topic', 'records', 'partitions', 'state'], ...rows]),
    )
  } finally {
    await log.close()
  }
}

interface TailOptions {
  readonly records: number
  readonly offset?: number
  readonly since?: string
  readonly partition?: number
  readonly follow?: boolean
  readonly raw?: boolean
}

/** How often `--follow` looks for new records, milliseconds. */
const FOLLOW_MS = 300

export async function tailTopic(session: Session, options: TailOptions, name: string): Promise<void> {
  const topic = topicNamed(name)
  const time = options.since === undefined ? undefined : timeOf(options.since)
  const config = await session.config()
  const log = await openRunLog(config, { readOnly: true })
  try {
    const info = (await log.topics()).find(entry => entry.topic === topic)
    const ends = info?.ends ?? []
    const { partition: only, records, raw = false } = options
    if (only !== undefined && only >= Math.max(1, ends.length)) {
      throw new GraspError(
        'CONFIG_INVALID',
        `--partition ${only}: ${topic} has ${ends.length}, numbered from 0`,
      )
    }
    const partitions = only === undefined ? [...ends.keys()] : [only]
    const newest = time === undefined && options.offset === undefined
    const found: Delivery[] = []
    const next = new Map<number, number>()
    for (const partition of partitions) {
      const end = ends[partition] ?? 0
      next.set(partition, end)
      const from = time === undefined ? { offset: options.offset ?? Math.max(0, end - records) } : { time }
      for await (const record of log.scan(topic, { partition, from })) {
        next.set(partition, record.offset + 1)
        if (newest) found.push(record)
        else session.line(recordDocument(record, raw))
      }
    }
    // Of several partitions only the newest records are wanted, in the order in which they were written.
    found.sort((a, b) => a.timestamp - b.timestamp)
    for (const record of found.slice(Math.max(0, found.length - records)))
      session.line(recordDocument(record, raw))
    if (options.follow) await follow(session, log, topic, next, raw)
  } finally {
    await log.close()
  }
}

async function follow(
  session: Session,
  log: Log,
  topic: Topic,
  next: Map<number, number>,
  raw: boolean,
): Promise<void> {
  // Between two records, so that no line is cut in half.
  const signal = session.askToStop()
  while (!signal.aborted) {
    for (const [partition, offset] of next) {
      for await (const record of log.scan(topic, { partition, from: { offset } })) {
        next.set(partition, record.offset + 1)
        session.line(recordDocument(record, raw))
      }
    }
    await setTimeout(FOLLOW_MS, undefined, { signal }).catch(() => {}) // woken by the interrupt
  }
}

function topicNamed(name: string): Topic {
  if ((TOPICS as readonly string[]).includes(name)) return name as Topic
  const near = nearest(name, TOPICS)
  const hint = near ? `did you mean ${near}?` : `topics: ${TOPICS.join(', ')}`
  throw new GraspError('CONFIG_INVALID', `there is no topic '${name}'; ${hint}`)
}

function timeOf(text: string): number {
  const time = Date.parse(text)
  if (Number.isNaN(time)) {
    throw new GraspError('CONFIG_INVALID', `--since ${text}: expected a time such as 2026-01-31T12:00:00Z`)
  }
  return time
}

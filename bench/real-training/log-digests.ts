/**
 * What is in a run's log, as one digest a topic: of keys and encoded records in order, but for times and places. Of
 * `policies` only the last record counts, since a run that was stopped leaves a checkpoint where that was.
 */
import { createHash } from 'node:crypto'
import type { Delivery } from '../../bus/port.ts'
import type { Config } from '../../pipelines/config/config.ts'
import { openRunLog } from '../../pipelines/run-log.ts'
import { TOPICS, type Topic } from '../../schemas/types.ts'

export interface TopicDigest {
  readonly topic: Topic
  readonly records: number
  /** sha256, hex. */
  readonly digest: string
}

/** How long an update took and where a checkpoint lies are the only things that two runs may differ in. */
const LEFT_OUT: Partial<Record<Topic, string>> = { updates: 'milliseconds', policies: 'path' }

export async function logDigests(config: Config): Promise<TopicDigest[]> {
  const log = await openRunLog(config, { readOnly: true })
  try {
    const present = new Set((await log.topics()).map(({ topic }) => topic))
    const digests: TopicDigest[] = []
    for (const topic of TOPICS) {
      if (!present.has(topic)) continue
      let hash = createHash('sha256')
      let records = 0
      for await (const record of log.scan(topic, { from: { offset: 0 } })) {
        records += 1
        if (topic === 'policies') hash = createHash('sha256')
        hash
          .update(JSON.stringify([record.partition, topic === 'policies' ? 0 : record.offset, record.key]))
          .update(bytesOf(record as Delivery))
      }
      digests.push({ topic, records, digest: hash.digest('hex') })
    }
    return digests
  } finally {
    await log.close()
  }
}

function bytesOf(record: Delivery): Uint8Array | string {
  if (record.error) throw record.error
  const left = LEFT_OUT[record.topic]
  return left === undefined ? record.payload : JSON.stringify({ ...record.value, [left]: null })
}

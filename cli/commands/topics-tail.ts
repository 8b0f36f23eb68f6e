import { setTimeout } from 'node:timers/promises'
import type { Delivery, Log } from '../../bus/port.ts'
import { newestRecords, partitionsOf, recordsFrom, type Selection } from '../../pipelines/operate/records.ts'
import { recordFilter } from '../../pipelines/operate/where.ts'
import { openRunLog } from '../../pipelines/run-log.ts'
import { recordDocument } from '../record-document.ts'
import type { Session } from '../session.ts'
import { timeOf, topicNamed } from './arguments.ts'

interface TailOptions {
  readonly records: number
  readonly offset?: number
  readonly since?: string
  readonly partition?: number
  readonly key?: string
  readonly where?: readonly string[]
  readonly limit?: number
  readonly follow?: boolean
  readonly raw?: boolean
}

/** How often `--follow` looks for new records, milliseconds. */
const FOLLOW_MS = 300

export async function tailTopic(session: Session, options: TailOptions, name: string): Promise<void> {
  const topic = topicNamed(name)
  const { partition, key, where = [], offset, records, raw = false } = options
  const time = options.since === undefined ? undefined : timeOf('--since', options.since)
  const filter = where.length > 0 ? recordFilter(topic, where) : undefined
  const selection: Selection = { topic, partition, key, filter }
  let left = options.limit ?? Number.POSITIVE_INFINITY
  const print = (record: Delivery) => {
    session.line(recordDocument(record, raw))
    left -= 1
  }
  const config = await session.config()
  const log = await openRunLog(config, { readOnly: true })
  try {
    const { ends } = await partitionsOf(log, selection)
    const next = new Map([...ends.entries()].filter(([p]) => partition === undefined || p === partition))
    if (time === undefined && offset === undefined) {
      for (const record of await newestRecords(log, selection, Math.min(records, left))) {
        print(record)
        moveOn(next, record)
      }
    } else if (left > 0) {
      for await (const record of recordsFrom(
        log,
        selection,
        time === undefined ? { offset: offset! } : { time },
      )) {
        print(record)
        moveOn(next, record)
        if (left <= 0) break
      }
    }
    if (options.follow && left > 0) {
      // Between two records, so that no line is cut in half.
      const signal = session.askToStop()
      await follow(
        log,
        selection,
        next,
        record => {
          print(record)
          return left > 0
        },
        signal,
      )
    }
  } finally {
    await log.close()
  }
}

/** What was printed already must not come again, whenever it was written. */
function moveOn(next: Map<number, number>, { partition, offset }: Delivery): void {
  next.set(partition, Math.max(next.get(partition) ?? 0, offset + 1))
}

async function follow(
  log: Log,
  selection: Selection,
  next: Map<number, number>,
  /** Whether to go on. */
  print: (record: Delivery) => boolean,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    for (const [partition, offset] of next) {
      for await (const record of recordsFrom(log, { ...selection, partition }, { offset })) {
        moveOn(next, record)
        if (!print(record)) return
      }
    }
    await setTimeout(FOLLOW_MS, undefined, { signal }).catch(() => {}) // woken by the interrupt
  }
}

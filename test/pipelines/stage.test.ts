/** A stage that makes batches of several partitions, on a real Kafka, while the partitions are shared out anew. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import pino from 'pino'
import {
  bufferCount,
  concatMap,
  lastValueFrom,
  NEVER,
  type Observable,
  Subject,
  takeUntil,
  tap,
  toArray,
} from 'rxjs'
import type { Committed } from '../../bus/commit-in-order.ts'
import { type Log, type LogRecord, output } from '../../bus/port.ts'
import type { StageContext } from '../../pipelines/context.ts'
import { runStage } from '../../pipelines/stage.ts'
import { testRun } from '../bus/kafka/harness.ts'
import { gather, letter, questions, until } from '../bus/samples.ts'
import { findKafka } from '../helpers/kafka-broker.ts'

const kafka = await findKafka()
const skip = kafka.brokers ? false : kafka.skip
if (kafka.brokers) after(() => kafka.release())

const COUNT = 90
const SIZE = 8

interface Worker {
  readonly committed$: Observable<Committed>
  /** Batches as they were formed: the partition of each record. */
  readonly batches: number[][]
  readonly starts: string[]
}

/** A worker whose batches wait until `mayFinish` lets them. */
function worker(log: Log, mayFinish: () => Promise<void>): Worker {
  const starts: string[] = []
  const logger = pino({ level: 'info' }, { write: line => starts.push(JSON.parse(line).reason) })
  const config = { credits: { records: 32, bytes: 1 << 20 } }
  const context = { config, log, logger, progress: () => {}, stop$: NEVER, stopped: () => false }
  const batches: number[][] = []
  const batch = async (consumed: LogRecord<'questions'>[]) => {
    batches.push(consumed.map(({ partition }) => partition))
    await mayFinish()
    const outputs = consumed.map(({ key, value }) =>
      output('deadletters', key, letter(value.id, new Uint8Array(3))),
    )
    return { consumed, outputs }
  }
  const committed$ = runStage(context as unknown as StageContext, 'validation', 'questions', {
    atLeast: SIZE,
    work: flow => flow.records$.pipe(bufferCount(SIZE), concatMap(batch)),
    seals: ['deadletters'],
  })
  return { committed$, batches, starts }
}

describe('a stage on Kafka', { skip }, () => {
  it('starts again where a batch was torn; nothing is lost and nothing doubled', async () => {
    const timeouts = { session: 6_000, transaction: 2_000 }
    const run = testRun(kafka.brokers ?? [], { partitions: { questions: 4 }, timeouts })
    const [one, two] = [await run.open(), await run.open()]
    try {
      await one.append(questions(COUNT))
      await one.seal(['questions'])
      let letGo = () => {}
      const gate = new Promise<void>(resolve => {
        letGo = resolve
      })
      const first = worker(one, () => gate)
      const all = lastValueFrom(first.committed$.pipe(toArray()))
      await until(() => first.batches.length === 1)
      assert.ok(new Set(first.batches[0]).size === 4, 'the batch is of all partitions')
      // Another worker comes while that batch is in the making, gets partitions of it, and goes again.
      const enough = new Subject<void>()
      let commits = 0
      const second = worker(two, () => new Promise(resolve => setTimeout(resolve, 20)))
      const part = lastValueFrom(
        second.committed$.pipe(
          tap(() => {
            if (++commits === 2) enough.next()
          }),
          takeUntil(enough),
          toArray(),
        ),
      )
      await until(() => second.batches.length > 0)
      letGo()
      await part
      await all
      assert.ok(first.starts.length > 0)
      assert.match(first.starts[0]!, /went to another member .* in the middle of a batch/)
      const written = (await gather(one.scan('deadletters'))).map(({ value }) => value!.key)
      assert.equal(written.length, COUNT)
      assert.equal(new Set(written).size, COUNT)
      assert.ok((await one.topics()).find(({ topic }) => topic === 'deadletters')!.sealed)
    } finally {
      await Promise.all([one.close(), two.close()])
      await run.remove()
    }
  })
})

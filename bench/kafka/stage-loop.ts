/** A stage as the pipelines have it: read → decode → operator → encode → commit of outputs and positions. */
import { lastValueFrom, map } from 'rxjs'
import { openFlow } from '../../bus/flow.ts'
import type { LogRecord } from '../../bus/port.ts'
import { type Sample, startClock } from '../rounds.ts'
import { type BenchRun, PARTITIONS } from './cluster.ts'
import type { Load } from './loads.ts'

const GROUP = 'stage'

/** From the first record to the last commit; everything that the topic holds, again after it was set back. */
export async function stageLoop({ log }: BenchRun, load: Load): Promise<Sample> {
  const { from, records, bytes, inFlight } = load
  const credits = { records: inFlight, bytes: inFlight * (bytes + 1000) }
  await log.seek(from, GROUP, Array(PARTITIONS).fill(0))
  const flow = openFlow(log, from, { stage: GROUP, group: GROUP, credits, until: 'end' })
  let clock: ReturnType<typeof startClock> | undefined
  let count = 0
  const operator = map((record: LogRecord) => {
    clock ??= startClock()
    count++
    return { consumed: [record], outputs: [load.operate(record)] }
  })
  await lastValueFrom(flow.records$.pipe(operator, flow.commit()))
  const sample = clock!()
  if (count !== records) throw new Error(`the stage saw ${count} of ${records} records`)
  return sample
}

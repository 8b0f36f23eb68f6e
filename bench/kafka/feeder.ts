/** A process that fills `slices` as fast as it can, and tells after each step how far it is. */
import { openRun } from './cluster.ts'
import { sliceOutput } from './loads.ts'

export interface FeederWork {
  readonly brokers: readonly string[]
  readonly run: string
  readonly records: number
  readonly bytes: number
}

export interface FeederReport {
  readonly written: number
  /** Since it began to write. */
  readonly milliseconds: number
}

const STEP = 24

const { brokers, run, records, bytes } = JSON.parse(process.argv[2]!) as FeederWork
const log = await openRun(brokers, run, ['slices'])
const start = performance.now()
for (let written = 0; written < records; ) {
  const next = Math.min(records, written + STEP)
  await log.append(Array.from({ length: next - written }, (_, i) => sliceOutput(written + i, bytes)))
  written = next
  const report: FeederReport = { written, milliseconds: performance.now() - start }
  process.send!(report)
}
await log.close()
process.disconnect()

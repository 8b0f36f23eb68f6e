/**
 * A trainer ten times slower than the rollouts: a process of its own fills a topic as fast as it can, while a stage
 * reads it and takes ten times as long for each record, as measured at the same time. The stage's memory must stay
 * flat and no more than its credits may be in flight, however far it falls behind.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { concatMap, map } from 'rxjs'
import { openFlow } from '../../bus/flow.ts'
import type { LogRecord } from '../../bus/port.ts'
import { median } from '../rounds.ts'
import { type BenchRun, withRun } from './cluster.ts'
import type { FeederReport, FeederWork } from './feeder.ts'

const SLOWER = 10
const BYTES = 1 << 20
/** What a record weighs besides its bytes. */
const AROUND = 1 << 10
const CREDITS = { records: 16, bytes: 16 * (BYTES + AROUND) }
/** The first of so many parts of the run is left out when memory is judged. */
const PARTS = 4

export interface BackpressureResult {
  readonly records: number
  /** How many there were to be, in the time that there was. */
  readonly wanted: number
  readonly fedPerSecond: number
  readonly donePerSecond: number
  readonly credits: { readonly records: number; readonly bytes: number }
  readonly mostInFlight: { readonly records: number; readonly bytes: number }
  /** How many records the log held and the stage had not seen, at most. */
  readonly mostBehind: number
  /** MiB of the stage's process: the median of each quarter of the run, and the most there was. */
  readonly resident: readonly number[]
  readonly mostResident: number
  /** Median of the last quarter over that of the second. */
  readonly growth: number
}

/** Ends after so many seconds, however much is done by then. */
export interface Extent {
  readonly records: number
  readonly seconds: number
}

export async function measureBackpressure(
  brokers: readonly string[],
  extent: Extent,
  say: (line: string) => void,
): Promise<BackpressureResult> {
  const { records } = extent
  await checkDisk(records)
  return withRun(brokers, ['slices'], async run => {
    const feeder = await startFeeder({ brokers, run: run.run, records, bytes: BYTES })
    try {
      return await slowStage(run, extent, feeder, say)
    } finally {
      feeder.stop()
    }
  })
}

/** Where the broker runs on this machine, its data lies in the temporary folder. */
async function checkDisk(records: number): Promise<void> {
  const { bavail, bsize } = await statfs(tmpdir())
  const needed = 2 * records * BYTES
  if (bavail * bsize > needed) return
  const free = Math.round((bavail * bsize) / 2 ** 20)
  throw new Error(
    `${free} MiB are free in ${tmpdir()}, this needs ${needed / 2 ** 20}: run with --records 500`,
  )
}

interface Feeder {
  /** As of now. */
  readonly report: FeederReport
  stop(): void
}

async function startFeeder(work: FeederWork): Promise<Feeder> {
  const child = fork(fileURLToPath(new URL('./feeder.ts', import.meta.url)), [JSON.stringify(work)])
  let report: FeederReport | undefined
  let failure: Error | undefined
  child.on('message', message => {
    report = message as FeederReport
  })
  child.once('exit', code => {
    if (code !== 0) failure = new Error(`the process that fills the topic ended with ${code}`)
  })
  const feeder = {
    get report() {
      if (failure) throw failure
      return report!
    },
    stop: () => void child.kill(),
  }
  await Promise.race([once(child, 'message'), once(child, 'exit')])
  // Throws when it ended instead.
  feeder.report
  return feeder
}

async function slowStage(
  { log }: BenchRun,
  { records, seconds: limit }: Extent,
  feeder: Feeder,
  say: (line: string) => void,
): Promise<BackpressureResult> {
  const inFlight = { records: 0, bytes: 0 }
  const most = { records: 0, bytes: 0 }
  let mostBehind = 0
  let done = 0
  const resident: number[] = []
  const flow = openFlow(log, 'slices', { stage: 'bench', group: 'slow', credits: CREDITS, until: 'never' })

  // A commit gives credits back, and so records out, a moment before it tells that it is in: look after that.
  let looking: NodeJS.Immediate | undefined
  const look = () => {
    looking = undefined
    most.records = Math.max(most.records, inFlight.records)
    most.bytes = Math.max(most.bytes, inFlight.bytes)
  }
  const delivered = map((record: LogRecord<'slices'>) => {
    inFlight.records++
    inFlight.bytes += record.value.teacher.length
    looking ??= setImmediate(look)
    return record
  })

  const start = performance.now()
  let begun = 0
  const slow = concatMap(async (record: LogRecord<'slices'>) => {
    const { milliseconds, written } = feeder.report
    const pause = (SLOWER * milliseconds) / written
    const now = performance.now()
    // Of its own, and all of them together: the feeder may have become slower since.
    const until = Math.max(now + pause, start + ++begun * pause)
    await new Promise(resolve => setTimeout(resolve, until - now))
    return { consumed: [record], outputs: [] }
  })

  const memory = setInterval(() => resident.push(process.memoryUsage().rss / 2 ** 20), 100)
  try {
    await new Promise<void>((resolve, reject) => {
      const subscription = flow.records$.pipe(delivered, slow, flow.commit()).subscribe({
        next: ({ finished }) => {
          for (const _ of finished) {
            inFlight.records--
            inFlight.bytes -= BYTES
          }
          const before = done
          done += finished.length
          mostBehind = Math.max(mostBehind, feeder.report.written - done - inFlight.records)
          if (Math.floor(done / 100) > Math.floor(before / 100)) {
            const megabytes = Math.round(process.memoryUsage().rss / 2 ** 20)
            say(
              `backpressure: ${done} of ${records} records done, ${feeder.report.written} fed, ` +
                `${inFlight.records} in flight, ${megabytes} MiB resident`,
            )
          }
          if (done < records && performance.now() - start < 1000 * limit) return
          subscription.unsubscribe()
          resolve()
        },
        error: reject,
      })
    })
  } finally {
    clearInterval(memory)
    clearImmediate(looking)
  }
  const seconds = (performance.now() - start) / 1000
  const { milliseconds, written } = feeder.report
  const quarters = Array.from({ length: PARTS }, (_, i) => {
    const part = (n: number) => Math.floor((n * resident.length) / PARTS)
    return Math.round(median(resident.slice(part(i), part(i + 1))))
  })
  return {
    records: done,
    wanted: records,
    fedPerSecond: (1000 * written) / milliseconds,
    donePerSecond: done / seconds,
    credits: CREDITS,
    mostInFlight: most,
    mostBehind,
    resident: quarters,
    mostResident: Math.round(Math.max(...resident)),
    growth: quarters[PARTS - 1]! / quarters[1]!,
  }
}

import { setTimeout } from 'node:timers/promises'
import { type StageLag, stageLags } from '../../pipelines/operate/lag.ts'
import { openRunLog } from '../../pipelines/run-log.ts'
import { age } from '../age.ts'
import type { Session } from '../session.ts'
import { table } from '../table.ts'

interface LagOptions {
  readonly exact?: boolean
  /** Seconds; true where the option has no value. */
  readonly watch?: number | true
  readonly json?: boolean
}

const WATCH_SECONDS = 2

export async function lag(
  session: Session,
  { exact = false, watch, json = false }: LagOptions,
): Promise<void> {
  const config = await session.config()
  const log = await openRunLog(config, { readOnly: true })
  try {
    if (watch === undefined) {
      const [stages, now] = [await stageLags(log, { exact }), Date.now()]
      session.result(lagDocument(config.run, stages, now), lagTable(stages, now))
      return
    }
    const signal = session.askToStop()
    const { stdout } = session.streams
    let shown = 0
    while (!signal.aborted) {
      const [stages, now] = [await stageLags(log, { exact }), Date.now()]
      if (json) session.line(lagDocument(config.run, stages, now))
      else if (stdout.isTTY) {
        const text = lagTable(stages, now)
        stdout.write(`${shown > 0 ? `\x1b[${shown}A\x1b[J` : ''}${text}`)
        shown = text.split('\n').length - 1
      } else stdout.write(lagLine(stages, now))
      const seconds = watch === true ? WATCH_SECONDS : watch
      await setTimeout(seconds * 1000, undefined, { signal }).catch(() => {}) // woken by the interrupt
    }
  } finally {
    await log.close()
  }
}

export function lagDocument(run: string, stages: readonly StageLag[], now: number): object {
  const time = (at: number | null) => (at === null ? null : new Date(at).toISOString())
  const seconds = (at: number | null) => (at === null ? null : (now - at) / 1000)
  return {
    run,
    time: time(now),
    stages: stages.map(({ records, oldest, partitions, ...stage }) => ({
      ...stage,
      lag: records,
      oldest: time(oldest),
      ageSeconds: seconds(oldest),
      state: stateOf({ records, oldest, partitions, ...stage }),
      partitions: partitions.map(({ records: unread, oldest: first, ...partition }) => ({
        ...partition,
        lag: unread,
        oldest: time(first),
        ageSeconds: seconds(first),
      })),
    })),
  }
}

const amount = ({ records, atMost }: StageLag) => (records === null ? `≤ ${atMost}` : String(records))

export function lagTable(stages: readonly StageLag[], now: number): string {
  const rows = stages.map(stage => {
    const { topic, group, end, committed, oldest } = stage
    if (group === null) return [stage.stage, topic ?? '(files)', '–', '–', '–', '–', stateOf(stage)]
    return [
      stage.stage,
      topic ?? '',
      String(end),
      String(committed),
      amount(stage),
      oldest === null ? '–' : age(now - oldest),
      stateOf(stage),
    ]
  })
  return table([['stage', 'reads', 'end', 'committed', 'lag', 'oldest', 'state'], ...rows])
}

/** One line a look, for files and pipes. */
export function lagLine(stages: readonly StageLag[], now: number): string {
  const parts = stages
    .filter(({ group }) => group !== null)
    .map(stage => {
      const since = stage.oldest === null ? '' : ` (${age(now - stage.oldest)})`
      return `${stage.stage} ${amount(stage)}${since}`
    })
  return `${new Date(now).toISOString()} ${parts.join(', ')}\n`
}

/** In a word: what the stage is doing, as far as the log tells. */
function stateOf({ group, workers, atMost, sealed }: StageLag): string {
  if (group === null) return workers.length > 0 ? 'working' : 'keeps no position'
  if (workers.length > 0) return atMost > 0 ? 'working' : 'waiting'
  if (atMost > 0) return 'not running'
  return sealed ? 'complete' : 'caught up'
}

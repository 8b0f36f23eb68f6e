import { readFileSync } from 'node:fs'
import type { Log } from '../../bus/port.ts'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import {
  deadLetters,
  deadLettersAt,
  type Letter,
  type LetterId,
  letterName,
  parseLetterId,
} from '../../pipelines/operate/dead-letters.ts'
import { openExistingLog } from '../../pipelines/operate/open.ts'
import {
  type AppliedReplay,
  applyReplay,
  planReplay,
  type Refused,
  type ReplayPlan,
} from '../../pipelines/operate/replay.ts'
import { openRunLog } from '../../pipelines/run-log.ts'
import { confirm } from '../confirm.ts'
import type { Session } from '../session.ts'
import { table } from '../table.ts'
import { type FilterOptions, filterOf } from './deadletters.ts'

/** Letters that are named one by one. */
const MOST_ROWS = 30

interface ReplayOptions extends FilterOptions {
  readonly all?: boolean
  readonly again?: boolean
  readonly item?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
}

export async function replayLetters(
  session: Session,
  options: ReplayOptions,
  names: readonly string[],
): Promise<void> {
  const { all = false, again = false, dryRun = false, yes = false, item } = options
  const filter = filterOf(options)
  const filtered = Object.values(filter).some(value => value !== undefined)
  const ids = [...new Map(names.map(parseLetterId).map(id => [letterName(id), id])).values()]
  if (item !== undefined && ids.length !== 1)
    throw new GraspError('CONFIG_INVALID', '--item puts one item right: name its dead letter')
  if ([ids.length > 0, filtered || all].filter(Boolean).length !== 1) {
    const message =
      'name dead letters by their ids, or choose them with --stage, --code, --topic, --since or --all'
    throw new GraspError('CONFIG_INVALID', message)
  }
  const config = await session.config()
  const log = dryRun ? await openRunLog(config, { readOnly: true }) : await openExistingLog(config)
  try {
    const chosen = ids.length > 0 ? lettersAt(log, ids, item) : deadLetters(log, filter)
    const plan = await planReplay(log, chosen, { again, maxPostBytes: config.data.maxPostBytes })
    const text = describeReplay(plan)
    let applied: AppliedReplay | undefined
    if (!dryRun && plan.replays.length > 0) {
      session.say(text.trimEnd())
      // Whoever names them one by one has said what is meant.
      if (!yes && ids.length === 0) await confirm('Publish them?', session.streams)
      applied = await applyReplay(log, plan)
    }
    session.result(
      replayDocument(config.run, plan, applied),
      applied ? replayedText(plan, applied) : `${text}${dryRun ? '\nNothing was published.\n' : ''}`,
    )
    const refused = plan.refused.length + (applied?.refused.length ?? 0)
    if (ids.length > 0 && refused > 0) session.fail()
  } finally {
    await log.close()
  }
}

/** The letters of these ids; with `file`, the item of the one letter as that file has it. */
async function* lettersAt(log: Log, ids: readonly LetterId[], file?: string): AsyncGenerator<Letter> {
  for await (const letter of deadLettersAt(log, ids)) {
    if (file === undefined) {
      yield letter
      continue
    }
    const { value } = letter
    if (value.topic !== '' || value.stage !== 'ingest') {
      const message = `--item ${file}: ${letterName(letter)} is no item of a data file but a record of ${value.topic}`
      throw new GraspError('CONFIG_INVALID', message)
    }
    yield { ...letter, value: { ...value, payload: read(file) }, corrected: true }
  }
}

function read(file: string): Uint8Array {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new GraspError('DATA_INVALID', `--item ${file}: cannot be read: ${describeError(cause)}`, { cause })
  }
}

function replayDocument(run: string, plan: ReplayPlan, applied: AppliedReplay | undefined): object {
  const { replays, refused, reopens } = plan
  const done = new Map(applied?.done.map(({ letter, to }) => [letterName(letter), to]))
  return {
    ...{ run, applied: done.size > 0 },
    replays: replays.map(({ letters, topic, key }) => ({
      deadletters: letters.map(letterName),
      topic,
      key,
      to: letters.map(letter => done.get(letterName(letter))).find(to => to !== undefined) ?? null,
    })),
    refused: [...refused, ...(applied?.refused ?? [])].map(({ letter, reason }) => {
      return { deadletter: letterName(letter), reason }
    }),
    reopens,
  }
}

function describeReplay({ replays, refused, reopens }: ReplayPlan): string {
  const lines: string[] = []
  if (replays.length === 0 && refused.length === 0) lines.push('no dead letters are chosen\n')
  if (replays.length > 0) {
    const rows = replays.flatMap(({ letters, topic, key }) =>
      letters.map(letter => [letterName(letter), topic, key]),
    )
    lines.push(shortTable(['dead letter', 'is published to', 'key'], rows))
  }
  for (const note of new Set(replays.flatMap(replay => replay.note ?? []))) lines.push(`${note}\n`)
  if (refused.length > 0) lines.push(refusedTable(refused))
  if (reopens.length > 0) lines.push(`${reopens.join(', ')}: complete by now; this opens them again.\n`)
  return lines.join('\n')
}

function refusedTable(refused: readonly Refused[]): string {
  const rows = refused.map(({ letter, reason }) => [letterName(letter), reason])
  return shortTable(['dead letter', 'is not replayed, since'], rows)
}

function shortTable(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const more = rows.length - MOST_ROWS
  if (more <= 0) return table([heading, ...rows])
  return `${table([heading, ...rows.slice(0, MOST_ROWS)])}and ${more} more (--json names all)\n`
}

function replayedText({ reopens }: ReplayPlan, { done, refused }: AppliedReplay): string {
  const next = reopens.length > 0 ? '; the run is open again, and `grasp run` goes on with it' : ''
  const count = `${done.length} dead letter${done.length === 1 ? '' : 's'} replayed${next}\n`
  return refused.length === 0 ? count : `${count}\n${refusedTable(refused)}`
}

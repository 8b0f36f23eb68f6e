import { readFileSync } from 'node:fs'
import type { Log } from '../../bus/port.ts'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import {
  contentOf,
  deadLetter,
  deadLetters,
  type Letter,
  type LetterFilter,
  type LetterId,
  letterName,
  parseLetterId,
} from '../../pipelines/operate/dead-letters.ts'
import { openExistingLog } from '../../pipelines/operate/open.ts'
import { applyReplay, place, planReplay, type ReplayPlan } from '../../pipelines/operate/replay.ts'
import { ReplayTargets } from '../../pipelines/operate/replay-target.ts'
import { openRunLog } from '../../pipelines/run-log.ts'
import { confirm } from '../confirm.ts'
import { plain } from '../record-document.ts'
import type { Session } from '../session.ts'
import { table } from '../table.ts'
import { stageNamed, timeOf, topicNamed } from './arguments.ts'

interface FilterOptions {
  readonly stage?: string
  readonly code?: string
  readonly topic?: string
  readonly since?: string
}

/** Messages are cut here in the table; `show` has them whole. */
const MESSAGE_WIDTH = 70

function filterOf({ stage, code, topic, since }: FilterOptions): LetterFilter {
  return {
    code,
    ...(stage !== undefined && { stage: stageNamed(stage) }),
    ...(topic !== undefined && { topic: topic === '-' ? '' : topicNamed(topic) }),
    ...(since !== undefined && { since: timeOf('--since', since) }),
  }
}

const iso = (time: number) => new Date(time).toISOString()

const sourceOf = ({ value }: Letter) =>
  value.topic === '' ? `file item ${value.key}` : place(value as never)

const stateOf = ({ replay }: Letter) =>
  replay === undefined ? 'no' : replay.to === null ? 'cut off' : `to ${place(replay.to)}`

function letterDocument(letter: Letter): object {
  const { stage, topic, partition, offset, key, code, message, attempts, payload } = letter.value
  const { replay } = letter
  return {
    id: letterName(letter),
    time: iso(letter.timestamp),
    ...{ stage, code, message, attempts },
    source: topic === '' ? { key } : { topic, partition, offset, key },
    bytes: payload.length,
    replayed: replay === undefined ? null : { time: iso(replay.at), to: replay.to },
  }
}

export async function listLetters(session: Session, options: FilterOptions): Promise<void> {
  const filter = filterOf(options)
  const config = await session.config()
  const log = await openRunLog(config, { readOnly: true })
  try {
    const letters: Letter[] = []
    for await (const letter of deadLetters(log, filter)) letters.push(letter)
    const rows = letters.map(letter => [
      letterName(letter),
      iso(letter.timestamp),
      letter.value.stage,
      letter.value.code,
      sourceOf(letter),
      stateOf(letter),
      cut(letter.value.message),
    ])
    session.result(
      { run: config.run, deadletters: letters.map(letterDocument) },
      letters.length === 0
        ? 'no dead letters\n'
        : table([['id', 'time', 'stage', 'code', 'source', 'replayed', 'message'], ...rows]),
    )
  } finally {
    await log.close()
  }
}

function cut(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ')
  return line.length <= MESSAGE_WIDTH ? line : `${line.slice(0, MESSAGE_WIDTH - 1)}…`
}

export async function showLetter(
  session: Session,
  { raw = false }: { readonly raw?: boolean },
  name: string,
): Promise<void> {
  const id = parseLetterId(name)
  const config = await session.config()
  const log = await openRunLog(config, { readOnly: true })
  try {
    const letter = await deadLetter(log, id)
    const { stage, code, message, attempts, key, payload } = letter.value
    const { value, error } = await contentOf(log, letter)
    const target = await new ReplayTargets(log, config.data).of(letter)
    const record = error === undefined ? plain(value, raw) : null
    const replay = target.output ? { topic: target.output.topic } : { refused: target.refused }
    const document = {
      ...letterDocument(letter),
      replay,
      record,
      ...(error && { error: { code: error.code, message: error.message } }),
      ...(raw && { payload: plain(payload, true) }),
    }
    const facts = [
      ['stage', stage],
      ['time', iso(letter.timestamp)],
      ['source', sourceOf(letter)],
      ['key', key],
      ['code', code],
      ['message', message],
      ['attempts', String(attempts)],
      ['replayed', stateOf(letter)],
      [
        'replaying',
        target.output ? `would publish it to ${target.output.topic}` : `is refused: ${target.refused}`,
      ],
    ]
    const shown = error
      ? `${payload.length} bytes that cannot be shown: ${error.message}\n`
      : `${JSON.stringify(record, null, 2)}\n`
    session.result(document, `${table([[letterName(letter), ''], ...facts])}\n${shown}`)
  } finally {
    await log.close()
  }
}

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
  const log = await openExistingLog(config)
  try {
    const chosen = ids.length > 0 ? await lettersAt(log, ids, item) : deadLetters(log, filter)
    const plan = await planReplay(log, chosen, { again, maxPostBytes: config.data.maxPostBytes })
    const text = describeReplay(plan)
    let done: Awaited<ReturnType<typeof applyReplay>> = []
    if (!dryRun && plan.replays.length > 0) {
      session.say(text.trimEnd())
      // Whoever names them one by one has said what is meant.
      if (!yes && ids.length === 0) await confirm('Publish them?')
      done = await applyReplay(log, plan)
    }
    const applied = done.length > 0
    session.result(
      replayDocument(config.run, plan, applied, done),
      applied ? replayedText(plan, done.length) : text,
    )
    if (ids.length > 0 && plan.refused.length > 0) session.fail()
  } finally {
    await log.close()
  }
}

/** The letters of these ids; with `file`, the item of the one letter as that file has it. */
async function lettersAt(log: Log, ids: readonly LetterId[], file?: string): Promise<Letter[]> {
  const letters = await Promise.all(ids.map(id => deadLetter(log, id)))
  if (file === undefined) return letters
  return letters.map(letter => {
    const { value } = letter
    if (value.topic === '' && value.stage === 'ingest')
      return { ...letter, value: { ...value, payload: read(file) } }
    const message = `--item ${file}: ${letterName(letter)} is no item of a data file but a record of ${value.topic}`
    throw new GraspError('CONFIG_INVALID', message)
  })
}

function read(file: string): Uint8Array {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new GraspError('DATA_INVALID', `--item ${file}: cannot be read: ${describeError(cause)}`, { cause })
  }
}

function replayDocument(
  run: string,
  { replays, refused, reopens }: ReplayPlan,
  applied: boolean,
  done: Awaited<ReturnType<typeof applyReplay>>,
): object {
  return {
    ...{ run, applied },
    replays: replays.map(({ letters, output }) => ({
      deadletters: letters.map(letterName),
      topic: output.topic,
      key: output.key,
      to: done.find(({ letter }) => letter === letters[0])?.to ?? null,
    })),
    refused: refused.map(({ letter, reason }) => ({ deadletter: letterName(letter), reason })),
    reopens,
  }
}

function describeReplay({ replays, refused, reopens }: ReplayPlan): string {
  const lines: string[] = []
  if (replays.length === 0 && refused.length === 0) lines.push('no dead letters are chosen\n')
  if (replays.length > 0) {
    const rows = replays.flatMap(({ letters, output }) =>
      letters.map(letter => [letterName(letter), output.topic, output.key]),
    )
    lines.push(table([['dead letter', 'is published to', 'key'], ...rows]))
  }
  for (const note of new Set(replays.flatMap(replay => replay.note ?? []))) lines.push(`${note}\n`)
  if (refused.length > 0) {
    const rows = refused.map(({ letter, reason }) => [letterName(letter), reason])
    lines.push(table([['dead letter', 'is not replayed, since'], ...rows]))
  }
  if (reopens.length > 0) lines.push(`${reopens.join(', ')}: complete by now, open again for this.\n`)
  return lines.join('\n')
}

function replayedText({ reopens }: ReplayPlan, count: number): string {
  const next = reopens.length > 0 ? '; the run is open again, and `grasp run` goes on with it' : ''
  return `${count} dead letter${count === 1 ? '' : 's'} replayed${next}\n`
}

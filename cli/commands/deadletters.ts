import {
  contentOf,
  deadLetter,
  deadLetters,
  type Letter,
  type LetterFilter,
  letterName,
  parseLetterId,
} from '../../pipelines/operate/dead-letters.ts'
import { place } from '../../pipelines/operate/replay.ts'
import { ReplayTargets } from '../../pipelines/operate/replay-target.ts'
import { openRunLog } from '../../pipelines/run-log.ts'
import type { Terminal } from '../progress.ts'
import { plain } from '../record-document.ts'
import type { Session } from '../session.ts'
import { table } from '../table.ts'
import { stageNamed, timeOf, topicNamed } from './arguments.ts'

export interface FilterOptions {
  readonly stage?: string
  readonly code?: string
  readonly topic?: string
  readonly since?: string
}

/** Messages are cut in the table, on a terminal to its width; `show` has them whole. */
const MESSAGE_WIDTH = 70
const LEAST_MESSAGE_WIDTH = 20

export function filterOf({ stage, code, topic, since }: FilterOptions): LetterFilter {
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

const stateOf = ({ replay }: Letter) => (replay === undefined ? 'no' : `to ${place(replay.to)}`)

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
    // Payloads may be large and many, so nothing keeps a letter.
    const documents: object[] = []
    const rows: string[][] = []
    const unreadable: string[] = []
    for await (const letter of deadLetters(log, filter, record => unreadable.push(letterName(record)))) {
      documents.push(letterDocument(letter))
      rows.push([
        letterName(letter),
        iso(letter.timestamp),
        letter.value.stage,
        letter.value.code,
        sourceOf(letter),
        stateOf(letter),
        letter.value.message.replaceAll(/\s+/g, ' '),
      ])
    }
    if (unreadable.length > 0) {
      const many = `${unreadable.length} of deadletters cannot be decoded (${unreadable.slice(0, 3).join(', ')})`
      session.hooks.logger.warn(`${many}; \`grasp topics tail deadletters\` shows why`)
    }
    session.result(
      { run: config.run, deadletters: documents, unreadable },
      documents.length === 0
        ? 'no dead letters\n'
        : lettersTable(rows, session.streams.stdout) +
            '\n`grasp deadletters show ID` has the whole message and the record; `replay ID` publishes it again.\n',
    )
  } finally {
    await log.close()
  }
}

function lettersTable(rows: readonly string[][], { isTTY = false, columns }: Terminal): string {
  const all = [['id', 'time', 'stage', 'code', 'source', 'replayed', 'message'], ...rows]
  const before = Math.max(
    ...table(all.map(row => row.slice(0, -1)))
      .split('\n')
      .map(line => line.length),
  )
  const width = isTTY ? Math.max(LEAST_MESSAGE_WIDTH, (columns || 80) - before - 3) : MESSAGE_WIDTH
  const cut = (text: string) => (text.length <= width ? text : `${text.slice(0, width - 1)}…`)
  return table(all.map(row => [...row.slice(0, -1), cut(row.at(-1)!)]))
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
    const replay = target.refused === undefined ? { topic: target.topic } : { refused: target.refused }
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
        target.refused === undefined
          ? `would publish it to ${target.topic}`
          : `is refused: ${target.refused}`,
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

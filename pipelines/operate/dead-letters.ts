/** The dead letters of a run, and whether they were replayed. */
import type { Delivery, Log } from '../../bus/port.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import type { DeadLetter } from '../../schemas/types.ts'
import { recordsAt } from './records.ts'
import { type Replay, ReplayNotes } from './replay-notes.ts'

/** Where a dead letter stands in `deadletters`. */
export interface LetterId {
  readonly partition: number
  readonly offset: number
}

export interface Letter extends LetterId {
  /** Milliseconds since the epoch, when it became one. */
  readonly timestamp: number
  readonly value: DeadLetter
  readonly replay: Replay | undefined
  /** Its item is not the one in the log but one put right. */
  readonly corrected?: true
}

/** All that are given must hold. */
export interface LetterFilter {
  readonly stage?: string | undefined
  readonly code?: string | undefined
  /** Of the record that could not be processed; empty for items of files. */
  readonly topic?: string | undefined
  /** Milliseconds since the epoch. */
  readonly since?: number | undefined
}

/** `deadletters/0/17`, `0/17`, or `17` for partition 0. Errors: CONFIG_INVALID. */
export function parseLetterId(text: string): LetterId {
  const [, partition = '0', offset] = /^(?:(?:deadletters\/)?(\d+)\/)?(\d+)$/.exec(text) ?? []
  if (offset !== undefined) return { partition: Number(partition), offset: Number(offset) }
  throw new GraspError(
    'CONFIG_INVALID',
    `dead letter ${text}: expected deadletters/PARTITION/OFFSET, as \`grasp deadletters list\` shows it`,
  )
}

export const letterName = ({ partition, offset }: LetterId) => `deadletters/${partition}/${offset}`

/** Oldest first. What cannot be decoded is no letter that anybody could act on: `unreadable` is told. */
export async function* deadLetters(
  log: Log,
  filter: LetterFilter = {},
  unreadable: (record: Delivery) => void = () => {},
): AsyncGenerator<Letter> {
  const notes = new ReplayNotes(log)
  const { stage, code, topic, since } = filter
  const from = since === undefined ? { offset: 0 } : { time: since }
  for await (const record of log.scan('deadletters', { from })) {
    const { value } = record
    if (value === undefined) {
      unreadable(record)
      continue
    }
    if (stage !== undefined && value.stage !== stage) continue
    if (code !== undefined && value.code !== code) continue
    if (topic !== undefined && value.topic !== topic) continue
    yield await letterOf(record, value, notes)
  }
}

/**
 * Those at these places, by partition and offset. Errors: CONFIG_INVALID where there is none; and that of the one
 * that cannot be decoded.
 */
export async function* deadLettersAt(
  log: Log,
  ids: readonly LetterId[],
  notes = new ReplayNotes(log),
): AsyncGenerator<Letter> {
  const { ends } = (await log.topics()).find(({ topic }) => topic === 'deadletters') ?? { ends: [] }
  for (const id of ids) if (id.offset >= (ends[id.partition] ?? 0)) throw noLetter(id)
  const missing = new Map(ids.map(id => [letterName(id), id]))
  for await (const record of recordsAt(log, 'deadletters', ids)) {
    missing.delete(letterName(record))
    if (record.error !== undefined) throw record.error
    yield await letterOf(record, record.value as DeadLetter, notes)
  }
  for (const id of missing.values()) throw noLetter(id)
}

function noLetter(id: LetterId): GraspError {
  const message = `there is no dead letter ${letterName(id)}; \`grasp deadletters list\` shows those that there are`
  return new GraspError('CONFIG_INVALID', message)
}

/** Errors: as above. */
export async function deadLetter(log: Log, id: LetterId): Promise<Letter> {
  const { value } = await deadLettersAt(log, [id]).next()
  return value as Letter
}

async function letterOf(record: Delivery, value: DeadLetter, notes: ReplayNotes): Promise<Letter> {
  const { partition, offset, timestamp } = record
  return { partition, offset, timestamp, value, replay: await notes.get({ partition, offset }) }
}

export interface Content {
  /** The record as it was, or the file's item. */
  readonly value?: unknown
  /** Why it cannot be shown. */
  readonly error?: GraspError
}

/** What the letter carries, decoded. */
export async function contentOf(log: Log, { value: { topic, payload } }: Letter): Promise<Content> {
  try {
    if (topic === '') return { value: JSON.parse(new TextDecoder().decode(payload)) }
    return { value: await log.decode(topic as never, payload) }
  } catch (error) {
    if (error instanceof GraspError) return { error }
    const message = `the item is not JSON: ${(error as Error).message}`
    return { error: new GraspError('RECORD_UNDECODABLE', message) }
  }
}

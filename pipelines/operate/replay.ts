/** Publishes the records of dead letters again. */
import { isDeepStrictEqual } from 'node:util'
import type { Log, Output, Place } from '../../bus/port.ts'
import type { Topic } from '../../schemas/types.ts'
import { downstreamOf } from './consumers.ts'
import type { Letter } from './dead-letters.ts'
import { checkReopen, type Reach } from './reopen.ts'
import { type Replay, ReplayNotes } from './replay-notes.ts'
import { type ReplayOptions, ReplayTargets } from './replay-target.ts'

/** Letters whose replay is noted, published and noted again together. */
const AT_ONCE = 100

export interface ReplayRequest extends ReplayOptions {
  /** Also those that were replayed before. */
  readonly again?: boolean
}

export interface PlannedReplay {
  /** Those that this publishes: several letters of one instance need it only once. */
  readonly letters: readonly Letter[]
  readonly output: Output
  readonly note?: string
}

export interface ReplayPlan {
  readonly replays: readonly PlannedReplay[]
  readonly refused: readonly { readonly letter: Letter; readonly reason: string }[]
  readonly reach: Reach
  /** Topics that are complete and would be open again. */
  readonly reopens: readonly Topic[]
}

/**
 * Looks and publishes nothing; a replay that was cut off is looked up in the log, and noted where it went. Errors:
 * GROUP_ACTIVE where topics would be opened again and a stage that reads them is at work.
 */
export async function planReplay(
  log: Log,
  letters: Iterable<Letter> | AsyncIterable<Letter>,
  { again = false, ...options }: ReplayRequest,
): Promise<ReplayPlan> {
  const targets = new ReplayTargets(log, options)
  const replays = new Map<string, { letters: Letter[]; output: Output; note?: string }>()
  const refused: { letter: Letter; reason: string }[] = []
  for await (const letter of letters) {
    if (letter.replay?.to && !again) {
      refused.push({ letter, reason: `replayed before, to ${place(letter.replay.to)} (--again overrides)` })
      continue
    }
    const target = await targets.of(letter)
    if (target.output === undefined) {
      refused.push({ letter, reason: target.refused })
      continue
    }
    // What an instance publishes is the same for all of its letters.
    const name =
      target.note === undefined ? `${letter.partition}/${letter.offset}` : `of ${target.output.key}`
    const planned = replays.get(name)
    if (planned) planned.letters.push(letter)
    else replays.set(name, { ...target, letters: [letter] })
  }
  const reach = reachOf([...replays.values()].map(({ output }) => output.topic))
  const reopens = await checkReopen(log, reach, 'replaying')
  return { replays: [...replays.values()], refused, reach, reopens }
}

export interface Replayed {
  readonly letter: Letter
  readonly to: Place
}

/** Does what was planned, and notes it, so that no letter is replayed twice by accident. */
export async function applyReplay(log: Log, { replays, reach }: ReplayPlan): Promise<Replayed[]> {
  const reopens = await checkReopen(log, reach, 'replaying')
  if (reopens.length > 0) await log.unseal(reopens)
  const notes = new ReplayNotes(log)
  const done: Replayed[] = []
  for (let start = 0; start < replays.length; start += AT_ONCE) {
    const group = replays.slice(start, start + AT_ONCE)
    done.push(...(await publish(log, notes, group)))
  }
  return done
}

/**
 * Publishing and noting are two writes. So what is about to be published is noted before, and a replay that was
 * cut off in between is looked up in its topic instead of being done once more.
 */
async function publish(log: Log, notes: ReplayNotes, group: readonly PlannedReplay[]): Promise<Replayed[]> {
  const found = new Map<PlannedReplay, Place>()
  for (const planned of group) {
    const cutOff = planned.letters.find(({ replay }) => replay !== undefined && replay.to === null)
    const at = cutOff && (await published(log, planned.output, cutOff.replay!))
    if (at) found.set(planned, at)
  }
  const at = Date.now()
  const missing = group.filter(planned => !found.has(planned))
  await notes.set(missing.flatMap(({ letters }) => letters.map(id => ({ id, at, to: null }))))
  const places = await log.append(missing.map(({ output }) => output))
  for (const [i, planned] of missing.entries()) found.set(planned, places[i]!)
  const done = [...found].flatMap(([{ letters }, to]) => letters.map(letter => ({ letter, to })))
  await notes.set(done.map(({ letter, to }) => ({ id: letter, at, to })))
  return done
}

/** Where a replay that was cut off put its record, if it did. */
async function published(
  log: Log,
  { topic, key, value }: Output,
  { at }: Replay,
): Promise<Place | undefined> {
  for await (const record of log.scan(topic, { from: { time: at } })) {
    if (record.key !== key || !isDeepStrictEqual(record.value, value)) continue
    const { partition, offset } = record
    return { topic, partition, offset }
  }
  return undefined
}

function reachOf(topics: readonly Topic[]): Reach {
  const stages = new Set<Reach['stages'][number]>()
  const reached = new Set<Topic>()
  for (const topic of new Set(topics)) {
    const downstream = downstreamOf(topic)
    for (const stage of downstream.stages) stages.add(stage)
    for (const written of [topic, ...downstream.topics]) reached.add(written)
  }
  return { stages: [...stages], topics: [...reached] }
}

export const place = ({ topic, partition, offset }: Place) => `${topic}/${partition}/${offset}`

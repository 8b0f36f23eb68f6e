/** Publishes the records of dead letters again. */
import { isDeepStrictEqual } from 'node:util'
import type { Log, Output, Place } from '../../bus/port.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import { downstreamOf } from './consumers.ts'
import { deadLetter, type Letter, letterName } from './dead-letters.ts'
import { checkReopen, type Reach } from './reopen.ts'
import { ReplayNotes } from './replay-notes.ts'
import { type ReplayOptions, ReplayTargets } from './replay-target.ts'

/** Letters whose replay is noted, published and noted again together. */
const AT_ONCE = 100

export interface ReplayRequest extends ReplayOptions {
  /** Also those that were replayed before. */
  readonly again?: boolean
}

/** What one record is published for; letters are without their payloads, since many may be chosen. */
export interface PlannedReplay {
  /** Several letters of one instance need it only once. */
  readonly letters: readonly Letter[]
  readonly topic: Topic
  readonly key: string
  readonly note?: string
  /** Where a replay that was cut off put it: there is nothing left to do but to note that. */
  readonly found?: Place
  /** The letter as it was put right; the others are read again when their turn comes. */
  readonly corrected?: Letter
}

export interface ReplayPlan {
  readonly replays: readonly PlannedReplay[]
  readonly refused: readonly { readonly letter: Letter; readonly reason: string }[]
  readonly reach: Reach
  /** Topics that are complete and would be open again. */
  readonly reopens: readonly Topic[]
  readonly options: ReplayOptions
}

/**
 * Looks and publishes nothing. Errors: GROUP_ACTIVE where topics would be opened again and a stage that reads them
 * is at work.
 */
export async function planReplay(
  log: Log,
  letters: Iterable<Letter> | AsyncIterable<Letter>,
  { again = false, ...options }: ReplayRequest,
): Promise<ReplayPlan> {
  const targets = new ReplayTargets(log, options)
  const replays = new Map<string, PlannedReplay & { letters: Letter[] }>()
  const refused: { letter: Letter; reason: string }[] = []
  for await (const full of letters) {
    const letter = withoutPayload(full)
    if (letter.replay?.to && !again) {
      refused.push({ letter, reason: `replayed before, to ${place(letter.replay.to)} (--again overrides)` })
      continue
    }
    const found = await cutOff(log, full, targets)
    const target = await targets.of(full, found === undefined)
    if (target.output === undefined) {
      refused.push({ letter, reason: target.refused })
      continue
    }
    const { topic, key } = target.output
    // What an instance publishes is the same for all of its letters.
    const name = target.note === undefined ? letterName(letter) : `of ${key}`
    const planned = replays.get(name)
    if (planned) planned.letters.push(letter)
    else {
      const { note } = target
      const more = {
        ...(note && { note }),
        ...(found && { found }),
        ...(full.corrected && { corrected: full }),
      }
      replays.set(name, { letters: [letter], topic, key, ...more })
    }
  }
  const missing = [...replays.values()].filter(planned => planned.found === undefined)
  const reach = reachOf(missing.map(({ topic }) => topic))
  const reopens = await checkReopen(log, reach, 'replaying')
  return { replays: [...replays.values()], refused, reach, reopens, options }
}

export interface Replayed {
  readonly letter: Letter
  readonly to: Place
}

/** Does what was planned, and notes it, so that no letter is replayed twice by accident. */
export async function applyReplay(log: Log, plan: ReplayPlan): Promise<Replayed[]> {
  const { replays, reach, options } = plan
  const reopens = await checkReopen(log, reach, 'replaying')
  if (reopens.length > 0) await log.unseal(reopens)
  const notes = new ReplayNotes(log)
  const targets = new ReplayTargets(log, options)
  const done: Replayed[] = []
  for (let start = 0; start < replays.length; start += AT_ONCE)
    done.push(...(await publish(log, { notes, targets }, replays.slice(start, start + AT_ONCE))))
  return done
}

/**
 * Publishing and noting are two writes. So what is about to be published is noted before, and a replay that was
 * cut off in between is looked up in its topic instead of being done once more.
 */
async function publish(
  log: Log,
  { notes, targets }: { readonly notes: ReplayNotes; readonly targets: ReplayTargets },
  group: readonly PlannedReplay[],
): Promise<Replayed[]> {
  const missing = group.filter(({ found }) => found === undefined)
  const outputs: Output[] = []
  for (const { letters, corrected } of missing) {
    const letter = corrected ?? (await deadLetter(log, letters[0]!, notes))
    const { output, refused } = await targets.of(letter)
    if (output === undefined)
      throw new GraspError('RECORD_INVALID', `${letterName(letter)}: by now, ${refused}`)
    outputs.push(output)
  }
  const at = Date.now()
  await notes.set(missing.flatMap(({ letters }) => letters.map(id => ({ id, at, to: null }))))
  const places = await log.append(outputs)
  const done = group.flatMap(planned => {
    const to = planned.found ?? places[missing.indexOf(planned)]!
    return planned.letters.map(letter => ({ letter, to }))
  })
  await notes.set(done.map(({ letter, to }) => ({ id: letter, at, to })))
  return done
}

/** Where a replay that was cut off put its record, if it was one and came so far. */
async function cutOff(log: Log, letter: Letter, targets: ReplayTargets): Promise<Place | undefined> {
  if (letter.replay === undefined || letter.replay.to !== null) return undefined
  const { output } = await targets.of(letter, false)
  if (output === undefined) return undefined
  const wanted = structuredClone(output.value)
  for await (const record of log.scan(output.topic, { from: { time: letter.replay.at } })) {
    if (record.key !== output.key || !isDeepStrictEqual(structuredClone(record.value), wanted)) continue
    const { topic, partition, offset } = record
    return { topic, partition, offset }
  }
  return undefined
}

function withoutPayload(letter: Letter): Letter {
  return { ...letter, value: { ...letter.value, payload: new Uint8Array() } }
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

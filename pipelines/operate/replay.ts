/** Publishes the records of dead letters again. */
import type { Log, Place } from '../../bus/port.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import { downstreamOf } from './consumers.ts'
import { deadLettersAt, type Letter, letterName } from './dead-letters.ts'
import { checkReopen, type Reach } from './reopen.ts'
import { ReplayNotes } from './replay-notes.ts'
import { type Publication, type ReplayOptions, ReplayTargets } from './replay-target.ts'

/** Records that are published together, in one transaction; fewer where the letters are large. */
const AT_ONCE = 500
const AT_ONCE_BYTES = 8 << 20
/** How often a group is tried again after others have noted replays at the same time. */
const TRIES = 10

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
  /** The letter as it was put right; the others are read again when their turn comes. */
  readonly corrected?: Letter
}

export interface Refused {
  readonly letter: Letter
  readonly reason: string
}

export interface ReplayPlan {
  readonly replays: readonly PlannedReplay[]
  readonly refused: readonly Refused[]
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
  const refused: Refused[] = []
  for await (const full of letters) {
    const letter = withoutPayload(full)
    if (letter.replay && !again) {
      refused.push({ letter, reason: `replayed before, to ${place(letter.replay.to)} (--again overrides)` })
      continue
    }
    const target = await targets.of(full)
    if (target.refused !== undefined) {
      refused.push({ letter, reason: target.refused })
      continue
    }
    const { topic, key, note } = target
    // What an instance publishes is the same for all of its letters.
    const name = note === undefined ? letterName(letter) : `of ${key}`
    const planned = replays.get(name)
    if (planned) planned.letters.push(letter)
    else {
      const more = { ...(note && { note }), ...(full.corrected && { corrected: full }) }
      replays.set(name, { letters: [letter], topic, key, ...more })
    }
  }
  const reach = reachOf([...replays.values()].map(({ topic }) => topic))
  const reopens = await checkReopen(log, reach, 'replaying')
  return { replays: [...replays.values()], refused, reach, reopens, options }
}

export interface Replayed {
  readonly letter: Letter
  readonly to: Place
}

export interface AppliedReplay {
  readonly done: readonly Replayed[]
  /** What was planned, but not done: since then another process has replayed it, or it cannot be replayed any more. */
  readonly refused: readonly Refused[]
}

/** Does what was planned, as far as nobody else has done it since. Errors: as those of `planReplay`. */
export async function applyReplay(log: Log, plan: ReplayPlan): Promise<AppliedReplay> {
  const { reach, options } = plan
  const reopens = await checkReopen(log, reach, 'replaying')
  if (reopens.length > 0) await log.unseal(reopens)
  const publisher = new Publisher(log, options)
  let [group, bytes]: [Ready[], number] = [[], 0]
  for await (const ready of readAgain(log, plan.replays)) {
    group.push(ready)
    bytes += ready.letter.value.payload.length
    if (group.length < AT_ONCE && bytes < AT_ONCE_BYTES) continue
    await publisher.publish(group)
    ;[group, bytes] = [[], 0]
  }
  await publisher.publish(group)
  return publisher
}

/** A planned replay with its first letter as a whole. */
interface Ready {
  readonly planned: PlannedReplay
  readonly letter: Letter
}

async function* readAgain(log: Log, replays: readonly PlannedReplay[]): AsyncGenerator<Ready> {
  const planned = new Map(replays.map(replay => [letterName(replay.letters[0]!), replay]))
  for (const replay of replays) if (replay.corrected) yield { planned: replay, letter: replay.corrected }
  const rest = replays.filter(({ corrected }) => corrected === undefined)
  for await (const letter of deadLettersAt(
    log,
    rest.map(({ letters }) => letters[0]!),
  ))
    yield { planned: planned.get(letterName(letter))!, letter }
}

/** Publishes groups of replays, each in one write with the notes of it. */
class Publisher implements AppliedReplay {
  readonly done: Replayed[] = []
  readonly refused: Refused[] = []
  readonly #log: Log
  readonly #options: ReplayOptions
  readonly #notes: ReplayNotes
  #targets: ReplayTargets

  constructor(log: Log, options: ReplayOptions) {
    this.#log = log
    this.#options = options
    this.#notes = new ReplayNotes(log)
    this.#targets = new ReplayTargets(log, options)
  }

  async publish(group: readonly Ready[]): Promise<void> {
    for (let tries = 1; ; tries++) {
      const refused: Refused[] = []
      const kept = await this.#stillToDo(group, refused)
      try {
        if (kept.length > 0) await this.#write(kept)
        this.refused.push(...refused)
        return
      } catch (error) {
        const isChanged = error instanceof GraspError && error.code === 'NOTE_CHANGED'
        if (!isChanged || tries === TRIES) throw error
        // What is there by now may be what this one was about to publish.
        this.#targets = new ReplayTargets(this.#log, this.#options)
      } finally {
        this.#notes.forget()
      }
    }
  }

  async #stillToDo(group: readonly Ready[], refused: Refused[]): Promise<Prepared[]> {
    const kept: Prepared[] = []
    for (const { planned, letter: full } of group) {
      const letters: Letter[] = []
      for (const letter of planned.letters) {
        const replay = await this.#notes.get(letter)
        if (replay?.at === letter.replay?.at) letters.push(letter)
        else if (replay)
          refused.push({
            letter,
            reason: `another process has replayed it meanwhile, to ${place(replay.to)}`,
          })
      }
      if (letters.length === 0) continue
      const target = await this.#targets.of(full)
      if (target.refused === undefined) kept.push({ letters, target })
      else refused.push(...letters.map(letter => ({ letter, reason: target.refused })))
    }
    return kept
  }

  async #write(kept: readonly Prepared[]): Promise<void> {
    const entries = kept.flatMap(({ letters }, index) => letters.map(id => ({ id, index })))
    const outputs = await this.#targets.outputs(kept.map(({ target }) => target))
    const notes = await this.#notes.changes(entries, Date.now())
    const places = await this.#log.append(outputs, { notes })
    kept.forEach(({ letters }, i) => {
      for (const letter of letters) this.done.push({ letter, to: places[i]! })
    })
  }
}

interface Prepared {
  readonly letters: readonly Letter[]
  readonly target: Publication
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

/** What replaying a dead letter publishes, and where: or why it cannot be replayed. */
import { type Log, type Output, output } from '../../bus/port.ts'
import { isPerRecord } from '../../errors/grasp-error.ts'
import type { Context, Topic } from '../../schemas/types.ts'
import { Fault, questionOf } from '../data/question.ts'
import { CONSUMERS } from './consumers.ts'
import type { Letter, LetterId } from './dead-letters.ts'
import { recordsAt, recordsFrom } from './records.ts'

/** A record to publish: its value, or where in its topic the same value stands already. */
export interface Publication {
  readonly topic: Topic
  readonly key: string
  readonly value?: unknown
  readonly at?: LetterId
  /** What is to be said about it. */
  readonly note?: string
  readonly refused?: undefined
}

export type Target = Publication | { readonly refused: string }

export interface ReplayOptions {
  /** `data.maxPostBytes`, which items of files are checked against. */
  readonly maxPostBytes: number
}

/** Topics whose records belong to a batch of the trainer, which has gone on without what failed. */
const BATCHED: ReadonlySet<string> = new Set(['instances', 'rollouts', 'slices'])

/** Finds the targets of letters, reading each topic that it needs once. */
export class ReplayTargets {
  readonly #log: Log
  readonly #options: ReplayOptions
  #questions: Promise<Set<string>> | undefined
  #validations: Promise<Map<string, LetterId>> | undefined

  constructor(log: Log, options: ReplayOptions) {
    this.#log = log
    this.#options = options
  }

  async of({ value: letter }: Letter): Promise<Target> {
    const { stage, topic, key, payload } = letter
    if (topic === '') {
      if (stage !== 'ingest') return { refused: `its item comes from ${stage}, which reads no topic` }
      return this.#item(key, payload)
    }
    if (!CONSUMERS.some(({ topic: read }) => read === topic))
      return { refused: `no stage reads ${topic}, so nothing would come of it` }
    let value: unknown
    try {
      value = await this.#log.decode(topic as Topic, payload)
    } catch (error) {
      if (!isPerRecord(error)) throw error
      return { refused: `it still cannot be decoded: ${error.message}` }
    }
    if (BATCHED.has(topic)) return this.#instance(topic, value)
    return { topic: topic as Topic, key, value }
  }

  /** The records of some targets, in their order. */
  async outputs(targets: readonly Publication[]): Promise<Output[]> {
    const values = new Map<string, unknown>()
    for (const topic of new Set(targets.filter(({ at }) => at).map(target => target.topic))) {
      const places = targets.flatMap(target => (target.topic === topic ? (target.at ?? []) : []))
      for await (const { partition, offset, value } of recordsAt(this.#log, topic, places))
        values.set(`${topic}/${partition}/${offset}`, value)
    }
    return targets.map(({ topic, key, value, at }) =>
      output(topic, key, (at ? values.get(`${topic}/${at.partition}/${at.offset}`) : value) as never),
    )
  }

  /** An item of a file goes to `questions`, if it is right by now. */
  async #item(key: string, payload: Uint8Array): Promise<Target> {
    const [, split] = /^(train|validation|test):/.exec(key) ?? []
    if (split === undefined)
      return { refused: `its key ${JSON.stringify(key)} does not say which split it is of` }
    try {
      const item: unknown = JSON.parse(new TextDecoder().decode(payload))
      const question = questionOf(item, { split, ...this.#options })
      this.#questions ??= this.#keysOfQuestions()
      const known = await this.#questions
      if (known.has(question.id)) return { refused: `questions already holds the id '${question.id}'` }
      known.add(question.id)
      return { topic: 'questions', key: question.id, value: question }
    } catch (error) {
      if (!(error instanceof Fault) && !(error instanceof SyntaxError)) throw error
      return { refused: `the item is still wrong: ${error.message}` }
    }
  }

  /** Its batch has gone on without it, so the instance gets a place in a new one. */
  async #instance(topic: string, value: unknown): Promise<Target> {
    const named = value as { readonly instance?: string; readonly context?: Context }
    const id = named.context?.id ?? named.instance ?? ''
    this.#validations ??= this.#accepted()
    const place = (await this.#validations).get(id)
    if (place === undefined)
      return { refused: `validations holds no accepted answer of its instance '${id}'` }
    const note = `a record of ${topic} belongs to a batch, which went on without it: the validation of '${id}' gets a new one`
    return { topic: 'validations', key: id, at: place, note }
  }

  async #keysOfQuestions(): Promise<Set<string>> {
    const ids = new Set<string>()
    for await (const { key } of recordsFrom(this.#log, { topic: 'questions' })) ids.add(key)
    return ids
  }

  /** Where the newest accepted validation of each instance stands. */
  async #accepted(): Promise<Map<string, LetterId>> {
    const found = new Map<string, LetterId>()
    for await (const { value, partition, offset } of this.#log.scan('validations'))
      if (value?.accepted) found.set(value.context.id, { partition, offset })
    return found
  }
}

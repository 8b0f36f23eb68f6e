/**
 * Which dead letters were replayed, and where to: kept in notes of the log, each for a thousand offsets of a
 * partition, so that none grows without bound.
 */
import { z } from 'zod'
import type { Log, Place } from '../../bus/port.ts'
import type { Topic } from '../../schemas/types.ts'

const LETTERS_OF_A_NOTE = 1000

const replaySchema = z.object({
  /** When it was begun, milliseconds since the epoch. */
  at: z.number(),
  /** Where the record went; null from before it is written until that is known. */
  to: z
    .object({
      topic: z.string().transform(topic => topic as Topic),
      partition: z.number(),
      offset: z.number(),
    })
    .nullable(),
})

export type Replay = z.output<typeof replaySchema>

const noteSchema = z.record(z.string(), replaySchema)

type Id = { readonly partition: number; readonly offset: number }

export class ReplayNotes {
  readonly #log: Log
  readonly #notes = new Map<string, Record<string, Replay>>()

  constructor(log: Log) {
    this.#log = log
  }

  async get(id: Id): Promise<Replay | undefined> {
    return (await this.#note(nameOf(id)))[id.offset]
  }

  /** Durable when it resolves. */
  async set(entries: readonly { readonly id: Id; readonly at: number; readonly to: Place | null }[]) {
    const changed = new Set<string>()
    for (const { id, at, to } of entries) {
      const name = nameOf(id)
      const place = to && { topic: to.topic, partition: to.partition, offset: to.offset }
      ;(await this.#note(name))[id.offset] = { at, to: place }
      changed.add(name)
    }
    for (const name of changed) await this.#log.setNote(name, JSON.stringify(this.#notes.get(name)))
  }

  async #note(name: string): Promise<Record<string, Replay>> {
    let note = this.#notes.get(name)
    if (note === undefined) {
      const text = await this.#log.note(name)
      note = text === undefined ? {} : noteSchema.parse(JSON.parse(text))
      this.#notes.set(name, note)
    }
    return note
  }
}

function nameOf({ partition, offset }: Id): string {
  return `replayed/${partition}/${Math.floor(offset / LETTERS_OF_A_NOTE)}`
}

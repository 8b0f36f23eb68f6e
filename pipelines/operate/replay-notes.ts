/**
 * Which dead letters were replayed, and where to: kept in notes of the log, each for a thousand offsets of a
 * partition, so that none grows without bound. They change together with what is published, so that a replay is
 * there as a whole or not at all, and of two that replay a letter at once only one succeeds.
 */
import { z } from 'zod'
import type { AppendNoting, Log, NoteChange } from '../../bus/port.ts'
import type { Topic } from '../../schemas/types.ts'

const LETTERS_OF_A_NOTE = 1000

const replaySchema = z.object({
  /** Milliseconds since the epoch. */
  at: z.number(),
  /** Where the record went. */
  to: z.object({
    topic: z.string().transform(topic => topic as Topic),
    partition: z.number(),
    offset: z.number(),
  }),
})

export type Replay = z.output<typeof replaySchema>

const noteSchema = z.record(z.string(), replaySchema)

type Id = { readonly partition: number; readonly offset: number }

interface Note {
  readonly text: string | undefined
  readonly replays: Readonly<Record<string, Replay>>
}

export class ReplayNotes {
  readonly #log: Log
  readonly #notes = new Map<string, Note>()

  constructor(log: Log) {
    this.#log = log
  }

  async get(id: Id): Promise<Replay | undefined> {
    return (await this.#note(nameOf(id))).replays[id.offset]
  }

  /**
   * What is to be noted with the records that are published for letters, at least one; `index` is the record's
   * among them. The notes must be what they were when they were read last.
   */
  async changes(
    entries: readonly { readonly id: Id; readonly index: number }[],
    at: number,
  ): Promise<AppendNoting['notes']> {
    const changes: NoteChange[] = []
    for (const name of new Set(entries.map(({ id }) => nameOf(id)))) {
      const { text, replays } = await this.#note(name)
      const own = entries.filter(({ id }) => nameOf(id) === name)
      changes.push({
        name,
        from: text,
        to: places => {
          const added = own.map(({ id, index }) => {
            const { topic, partition, offset } = places[index]!
            return [id.offset, { at, to: { topic, partition, offset } }]
          })
          return JSON.stringify({ ...replays, ...Object.fromEntries(added) })
        },
      })
    }
    return changes as [NoteChange, ...NoteChange[]]
  }

  /** They are read again when they are needed. */
  forget(): void {
    this.#notes.clear()
  }

  async #note(name: string): Promise<Note> {
    let note = this.#notes.get(name)
    if (note === undefined) {
      const text = await this.#log.note(name)
      note = { text, replays: text === undefined ? {} : noteSchema.parse(JSON.parse(text)) }
      this.#notes.set(name, note)
    }
    return note
  }
}

function nameOf({ partition, offset }: Id): string {
  return `replayed/${partition}/${Math.floor(offset / LETTERS_OF_A_NOTE)}`
}

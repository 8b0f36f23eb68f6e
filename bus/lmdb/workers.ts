/**
 * Who reads as which group: one small file a process and group in the run's folder, so that positions are not
 * set under a reader. A file outlives a process that was killed, so it names the process and when that began;
 * a process id that was given again to another one began at another time.
 *
 * What comes in between looking and setting is still noticed: the reader's next commit fails (`positions.ts`).
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { processStart } from './process-start.ts'

const FOLDER = 'workers'

const workerSchema = z.object({
  group: z.string(),
  host: z.string(),
  process: z.number(),
  /** What `processStart` said of the process. */
  started: z.string(),
  since: z.string(),
})

type Worker = z.output<typeof workerSchema>

export class Workers {
  readonly #folder: string
  /** Readers of this log by group. */
  readonly #own = new Map<string, number>()

  constructor(path: string) {
    this.#folder = join(path, FOLDER)
  }

  /** Says that this process reads as the group, until the function that it gives is called. */
  enter(group: string): () => void {
    const file = this.#file(group)
    const readers = this.#own.get(group) ?? 0
    if (readers === 0) {
      const started = processStart(process.pid) ?? ''
      const since = new Date().toISOString()
      const worker: Worker = { group, host: hostname(), process: process.pid, started, since }
      mkdirSync(this.#folder, { recursive: true })
      writeFileSync(file, JSON.stringify(worker))
    }
    this.#own.set(group, readers + 1)
    return () => {
      const left = this.#own.get(group)! - 1
      this.#own.set(group, left)
      if (left === 0) rmSync(file, { force: true })
    }
  }

  /** The processes that read as the group, in words. */
  of(group: string): string[] {
    const mine = `${nameOf(group)}.`
    return listed(this.#folder)
      .filter(name => name.startsWith(mine))
      .flatMap(name => {
        const file = join(this.#folder, name)
        const worker = read(file)
        if (worker === undefined || worker.group !== group) return []
        const { process, host, since } = worker
        if (host === hostname()) return isAlive(worker) ? [`process ${process} since ${since}`] : []
        return [`process ${process} on ${host} since ${since}; if it is gone, remove ${file}`]
      })
  }

  #file(group: string): string {
    return join(this.#folder, `${nameOf(group)}.${process.pid}`)
  }
}

/** Groups have any name; files have not. */
function nameOf(group: string): string {
  return createHash('sha256').update(group).digest('hex').slice(0, 24)
}

function isAlive({ process: id, started }: Worker): boolean {
  const now = processStart(id)
  return now !== undefined && (now === started || now === '' || started === '')
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** Undefined where the file is gone, or was cut off with its process by a power cut. */
function read(file: string): Worker | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    return workerSchema.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

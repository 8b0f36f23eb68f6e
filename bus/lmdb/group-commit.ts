/**
 * One write transaction at a time; what is asked for while it syncs to disk goes into the next one together,
 * so that many small commits cost one sync.
 */
import type { RootDatabase } from 'lmdb'
import { GraspError } from '../../errors/grasp-error.ts'
import { realCause } from './faults.ts'

/** What is gathered into one transaction at most, unless a single job is larger. */
const BATCH_BYTES = 64 << 20
const BATCH_JOBS = 4096

export interface Job<T> {
  /** What it is going to write, roughly. */
  readonly bytes?: number
  /** Looks, and refuses by throwing a GraspError: then only this job's promise rejects. */
  readonly check?: () => void
  /** Writes. Any error here undoes the whole transaction and rejects all that were in it. */
  readonly work: () => T
}

interface Waiting extends Job<unknown> {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

export class GroupCommit {
  readonly #root: RootDatabase
  readonly #settled: (committed: boolean) => void
  #waiting: Waiting[] = []
  #running: Promise<void> | undefined
  /** The job asked for last. */
  #last: Promise<unknown> = Promise.resolve()

  /** `settled` is called after every transaction, before the jobs' promises resolve. */
  constructor(root: RootDatabase, settled: (committed: boolean) => void) {
    this.#root = root
    this.#settled = settled
  }

  /** Runs a job inside a write transaction and resolves with its result once that is synced to disk. */
  run<T>(job: Job<T>): Promise<T> {
    const settled = new Promise<T>((resolve, reject) => {
      this.#waiting.push({ ...job, resolve: resolve as (value: unknown) => void, reject })
    })
    this.#last = settled
    this.#running ??= this.#drain()
    return settled
  }

  /** Resolves when everything asked for so far is settled; undefined when it is. */
  get pending(): Promise<void> | undefined {
    return this.#running && this.#last.then(ignore, ignore)
  }

  async #drain(): Promise<void> {
    // Lets in what is asked for in the same turn.
    await undefined
    while (this.#waiting.length > 0) await this.#commit(this.#batch())
    this.#running = undefined
  }

  #batch(): Waiting[] {
    let bytes = 0
    let jobs = 0
    for (const job of this.#waiting) {
      bytes += job.bytes ?? 0
      if (jobs > 0 && (bytes > BATCH_BYTES || jobs >= BATCH_JOBS)) break
      jobs++
    }
    return this.#waiting.splice(0, jobs)
  }

  async #commit(batch: Waiting[]): Promise<void> {
    let settle: (() => void)[] = []
    try {
      // A child transaction, because lmdb-js commits a plain one even when its callback throws.
      settle = await this.#root.childTransaction(() => batch.map(attempt))
    } catch (error) {
      const cause = await realCause(error)
      settle = batch.map(job => () => job.reject(cause))
      this.#settled(false)
      for (const done of settle) done()
      return
    }
    this.#settled(true)
    for (const done of settle) done()
  }
}

function ignore(): void {}

/** Runs a job and gives what is to be told once the transaction is in. */
function attempt({ check, work, resolve, reject }: Waiting): () => void {
  try {
    check?.()
  } catch (error) {
    if (error instanceof GraspError) return () => reject(error)
    throw error
  }
  const result = work()
  return () => resolve(result)
}

/**
 * How often the engine's process may die before a command gives up. A death counts until an hour has passed and
 * something was gained since: what kills the process at the same record each time gains nothing however long it takes,
 * and what kills it again and again elsewhere is worth a look as well.
 */
import { GraspError } from '../errors/grasp-error.ts'
import type { ProgressEvent } from './events.ts'

const WINDOW_MS = 3_600_000
const LONGEST_WAIT_SECONDS = 60

interface Death {
  readonly at: number
  readonly gained: number
  readonly message: string
}

export class EngineDeaths {
  readonly #limit: number
  readonly #now: () => number
  #counted: Death[] = []
  #gained = 0
  #newest = 0

  /** `limit`: so many are recovered from. */
  constructor(limit: number, now = () => performance.now()) {
    this.#limit = limit
    this.#now = now
  }

  /** Notes what the engine was good for. Updates that are made again, and what needs no engine, do not count. */
  noteProgress(event: ProgressEvent): void {
    if (event.kind === 'update') {
      if (event.version <= this.#newest) return
      this.#newest = event.version
      this.#gained++
    } else if (event.kind === 'stage') {
      if (['validation', 'rollout', 'scoring'].includes(event.stage)) this.#gained++
    } else if (event.kind === 'evaluation' && event.score === undefined) this.#gained++
  }

  /**
   * Notes a death; gives which one it is of those that count, and how long to wait before the next start.
   * @throws GraspError ENGINE_DIED when it is one too many.
   */
  note({ message }: GraspError): { readonly number: number; readonly waitSeconds: number } {
    const [now, gained] = [this.#now(), this.#gained]
    const counts = (death: Death) => now - death.at < WINDOW_MS || death.gained === gained
    this.#counted = [...this.#counted.filter(counts), { at: now, gained, message }]
    const number = this.#counted.length
    if (number > this.#limit) throw this.#tooMany()
    const inVain = this.#counted.filter(death => death.gained === gained).length
    return { number, waitSeconds: Math.min(LONGEST_WAIT_SECONDS, 2 ** (inVain - 1)) }
  }

  #tooMany(): GraspError {
    const [last, ...others] = this.#counted.toReversed() as [Death, ...Death[]]
    const idle = others.every(({ gained }) => gained === last.gained)
    const same = others.every(({ message }) => message === last.message)
    const when = idle ? 'without anything gained in between' : 'within an hour'
    const times = `It died ${others.length + 1} times ${when}${same ? ', each time so' : ''}; `
    return new GraspError(
      'ENGINE_DIED',
      `${last.message}. ${others.length > 0 ? times : ''}engine.restarts = ${this.#limit} allows for no more. The same ` +
        'command goes on from what the log and the last checkpoint have',
    )
  }
}

/** Repeats what fails by trouble that passes, with growing waits or those that the server asks for. */
import { GraspError } from '../errors/grasp-error.ts'

/** Trouble that may pass: the network, a busy server. */
export class Transient extends Error {
  override readonly name = 'Transient'
  /** Milliseconds that the server wants to be left alone for. */
  readonly after: number | undefined
  /** It left more than there ever was: the attempts count anew. */
  progressed = false
  /** There was no connection at all. */
  readonly unreachable: boolean

  constructor(message: string, options: TransientOptions = {}) {
    super(message, { cause: options.cause })
    this.after = options.after
    this.unreachable = options.unreachable ?? false
  }
}

interface TransientOptions {
  readonly after?: number | undefined
  readonly unreachable?: boolean
  readonly cause?: unknown
}

export interface RetryOptions {
  readonly signal: AbortSignal
  /** Told before each wait. */
  readonly tell: (line: string) => void
  /** Waits so many milliseconds, or until the signal is aborted. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>
  /** Milliseconds after which a silent connection is given up. */
  readonly silenceMs?: number
  /** Nothing was heard of the hub yet: where it cannot be reached, waiting would only hide a wrong address. */
  readonly firstContact?: boolean
}

/** In a row, without progress between them. */
const ATTEMPTS = 5
const FIRST_WAIT = 1000
/** The hub counts requests over windows of 5 minutes: a wait that it asks for is within them. */
const LONGEST_WAIT = 600_000

/** @throws GraspError HUB_FAILED when it failed five times in a row or the server asks for more than ten minutes. */
export async function withRetries<T>(
  what: string,
  attempt: () => Promise<T>,
  { signal, tell, pause = sleep, firstContact = false }: RetryOptions,
): Promise<T> {
  for (let failures = 0; ; ) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof Transient)) throw error
      if (error.unreachable && firstContact) {
        const help = 'is this machine online, and HF_ENDPOINT right where it is set?'
        throw new GraspError('HUB_FAILED', `${what}: ${error.message}; ${help}`, { cause: error })
      }
      failures = error.progressed ? 1 : failures + 1
      const { after, message } = error
      if (after !== undefined && after > LONGEST_WAIT) {
        const said = `the hub asks to come back in ${Math.ceil(after / 60_000)} minutes`
        throw new GraspError('HUB_FAILED', `${what}: ${message}; ${said}`, { cause: error })
      }
      if (failures === ATTEMPTS) {
        throw new GraspError(
          'HUB_FAILED',
          `${what}: ${message} (${failures} attempts). The same command goes on from what has arrived.`,
          { cause: error },
        )
      }
      const wait = after ?? FIRST_WAIT * 2 ** (failures - 1)
      tell(`${what}: ${message}; trying again in ${Math.ceil(wait / 1000)} s`)
      await pause(wait, signal)
    }
  }
}

/**
 * Milliseconds to wait by an answer's headers: Retry-After in seconds or as a date (RFC 9110, 10.2.3), or the hub's
 * `RateLimit: "resolvers";r=0;t=55` (draft-ietf-httpapi-ratelimit-headers) when nothing remains.
 */
export function waitOf(headers: Headers): number | undefined {
  const limit = /\br\s*=\s*0\s*;\s*t\s*=\s*(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]
  if (limit !== undefined) return Number(limit) * 1000
  const after = headers.get('retry-after')
  if (after === null) return undefined
  const ms = /^\s*\d+\s*$/.test(after) ? Number(after) * 1000 : Date.parse(after) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) return resolve()
    const wake = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', wake)
      resolve()
    }
    const timer = setTimeout(wake, ms)
    signal.addEventListener('abort', wake)
  })
}

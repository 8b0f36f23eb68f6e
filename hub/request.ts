/**
 * One request to the hub. Redirects are followed here and not by `fetch`: the token goes to the hub's own origin
 * alone (files come from other hosts, by addresses that carry their own permission), and the hub's headers about a
 * file are on its first answer.
 */
import { describeError, GraspError } from '../errors/grasp-error.ts'
import type { HubAccess } from './access.ts'
import { refusal } from './refusal.ts'
import type { Repository } from './repository.ts'
import { Transient, waitOf } from './retry.ts'

const SILENCE_MS = 30_000
const MOST_REDIRECTS = 5
const PASSING = new Set([408, 429, 500, 502, 503, 504])
const UNREACHABLE = /^(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|ENETDOWN)$/
/** Trouble with certificates, which another attempt would not mend. */
const UNTRUSTED = /^(CERT_|ERR_TLS|ERR_SSL|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/

export interface Request {
  readonly access: HubAccess
  readonly repository: Repository
  /** Path below the endpoint. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** Milliseconds after which a silent connection is given up. */
  readonly silenceMs?: number | undefined
}

export interface Answer {
  /** 2xx, or 416. */
  readonly status: number
  /** Of the hub itself, before any redirect. */
  readonly first: Headers
  readonly headers: Headers
  /** Pieces as they come. @throws Transient when the connection breaks or falls silent. */
  readonly body: AsyncIterable<Uint8Array>
}

/**
 * @param use reads the answer; what it leaves of the body is dropped.
 * @throws Transient, or GraspError HUB_FAILED for what another attempt would not mend, INTERRUPTED.
 */
export async function request<T>(options: Request, use: (answer: Answer) => Promise<T>): Promise<T> {
  const { access, path, signal, silenceMs = SILENCE_MS } = options
  const watch = new Watch(signal, silenceMs)
  let url = new URL(`${access.endpoint}/${path}`)
  const { origin } = url
  let first: Headers | undefined
  try {
    for (let hops = 0; ; hops++) {
      const response = await watch.over(() => fetch(url, init(options, url, origin, watch)), url)
      first ??= response.headers
      const { status, headers } = response
      try {
        const location = headers.get('location')
        if (status < 300 || status > 399 || location === null) {
          if (status !== 416) checkStatus(response, url, url.origin === origin, options)
          return await use({ status, first, headers, body: watch.body(response, url) })
        }
        if (hops === MOST_REDIRECTS) throw new GraspError('HUB_FAILED', `${url.host} redirects in a circle`)
        url = redirected(url, location)
      } finally {
        await discard(response)
      }
    }
  } finally {
    watch.end()
  }
}

function init({ access, headers }: Request, url: URL, origin: string, { signal }: Watch): RequestInit {
  const authorized = access.token !== undefined && url.origin === origin
  return {
    redirect: 'manual',
    signal,
    headers: {
      ...headers,
      // Compressed, neither sizes nor ranges would be those of the file. With a range, `fetch` adds this itself.
      ...(headers?.range === undefined ? { 'accept-encoding': 'identity' } : {}),
      'user-agent': 'grasp-stream',
      ...(authorized ? { authorization: `Bearer ${access.token}` } : {}),
    },
  }
}

function checkStatus(response: Response, url: URL, isHub: boolean, { repository, access }: Request): void {
  if (response.ok) return
  const { status, headers } = response
  // Where files are kept, a refusal means that the address has expired: the hub gives a new one.
  if (PASSING.has(status) || !isHub) {
    throw new Transient(`${url.host} answered ${status}`, { after: waitOf(headers) })
  }
  throw refusal(response, url, repository, access)
}

/** A body that nobody reads would keep its connection. */
async function discard({ body }: Response): Promise<void> {
  // One that was read or broke has nothing left to cancel.
  if (body !== null && !body.locked) await body.cancel().catch(() => {})
}

function redirected(from: URL, location: string): URL {
  const to = URL.canParse(location, from.href) ? new URL(location, from) : undefined
  if (
    to === undefined ||
    !/^https?:$/.test(to.protocol) ||
    (from.protocol === 'https:' && to.protocol === 'http:')
  ) {
    throw new GraspError('HUB_FAILED', `${from.host} redirects to what is no https address`)
  }
  // A fetch with credentials in its address is refused by the platform.
  to.username = ''
  to.password = ''
  return to
}

/** Aborts what is silent for too long, and tells apart why something ended. */
class Watch {
  readonly #outer: AbortSignal
  readonly #silenceMs: number
  readonly #silence = new AbortController()
  readonly signal: AbortSignal
  #timer: NodeJS.Timeout | undefined

  constructor(signal: AbortSignal, silenceMs: number) {
    this.#outer = signal
    this.#silenceMs = silenceMs
    this.signal = AbortSignal.any([signal, this.#silence.signal])
  }

  async over<T>(work: () => Promise<T>, url: URL): Promise<T> {
    this.#heard()
    try {
      return await work()
    } catch (error) {
      throw this.#failure(error, url, 'cannot be reached')
    }
  }

  async *body(response: Response, url: URL): AsyncGenerator<Uint8Array> {
    try {
      if (response.body === null || response.bodyUsed) return
      for await (const piece of response.body) {
        // The silence of a reader that is busy is not the hub's.
        this.end()
        yield piece as Uint8Array
        this.#heard()
      }
    } catch (error) {
      throw this.#failure(error, url, 'broke the connection')
    } finally {
      this.end()
    }
  }

  end(): void {
    clearTimeout(this.#timer)
  }

  #heard(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#silence.abort(), this.#silenceMs)
  }

  #failure(error: unknown, url: URL, what: string): Error {
    this.end()
    if (this.#outer.aborted) return new GraspError('INTERRUPTED', 'the download was stopped')
    if (this.#silence.signal.aborted) {
      return new Transient(`${url.host} was silent for ${this.#silenceMs / 1000} s`)
    }
    // `fetch` says only "fetch failed" or "terminated"; the reason is in its cause.
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    const code = (cause as NodeJS.ErrnoException).code ?? ''
    const reason = `${url.host} ${what}: ${code || describeError(cause)}`
    if (UNTRUSTED.test(code)) {
      const help = 'NODE_EXTRA_CA_CERTS names a file with further certificates to trust'
      return new GraspError('HUB_FAILED', `${reason}; ${help}`, { cause: error })
    }
    // Ports that `fetch` refuses, as browsers do: those of mail, say.
    const isBarred = describeError(cause) === 'bad port'
    if (isBarred) return new GraspError('HUB_FAILED', `${url.host} has a port that is barred for the web`)
    return new Transient(reason, { unreachable: UNREACHABLE.test(code), cause: error })
  }
}

/**
 * Calls an OpenAI-compatible server: POST {url}/chat/completions. A call has a time limit, is repeated on
 * trouble that passes (network, 408, 429, 5xx, a broken body) with growing waits or the server's Retry-After, and
 * takes one of a bounded number of places; a call that waits to be repeated keeps its place, so an overloaded
 * server sees fewer. What can only be put right by the user (a refused key, an unknown model or address) is
 * thrown as JUDGE_FAILED, and so is a server that never answered at all; what concerns one request is a result.
 */
import { describeError, GraspError } from '../errors/grasp-error.ts'
import { endpointOf, readKey } from './chat-access.ts'
import { excerpt } from './chat-verdict.ts'

export interface ChatClientOptions {
  /** Up to, not including, `/chat/completions`. Plain http only to this machine, unless `allowInsecure`. */
  readonly url: string
  readonly allowInsecure?: boolean
  /** The environment variable that holds the key. Without this and `apiKeyFile` none is sent. */
  readonly apiKeyEnv?: string
  readonly apiKeyFile?: string
  /** For one attempt, the body included. */
  readonly timeoutMs?: number
  /** Attempts after the first. */
  readonly retries?: number
  /** The first wait between attempts; it doubles each time, with jitter. */
  readonly backoffMs?: number
  /** The longest wait, whatever Retry-After says. */
  readonly maxDelayMs?: number
  /** Calls at the same time. */
  readonly concurrency?: number
  /** Ends waiting and running calls with INTERRUPTED. */
  readonly signal?: AbortSignal
}

export type Completion = { readonly text: string } | { readonly failed: string }

export interface ChatClient {
  /** Where it calls, without query and credentials. */
  readonly address: string
  complete(body: object): Promise<Completion>
}

/** More than any verdict; a server that streams for ever is cut off here. */
const MOST_BYTES = 2 ** 20

/** One attempt's end: done, worth another attempt (perhaps after a wait the server asked for), or hopeless. */
type Attempt =
  | { readonly text: string }
  | { readonly retry: string; readonly afterMs?: number }
  | { readonly failed: string }

export async function createChatClient(options: ChatClientOptions): Promise<ChatClient> {
  const { timeoutMs = 120_000, retries = 5, backoffMs = 1000, maxDelayMs = 60_000, concurrency = 8 } = options
  const { signal } = options
  for (const [name, value, least] of [
    ['timeoutMs', timeoutMs, 1],
    ['retries', retries, 0],
    ['backoffMs', backoffMs, 0],
    ['maxDelayMs', maxDelayMs, 0],
    ['concurrency', concurrency, 1],
  ] as const) {
    if (!Number.isInteger(value) || value < least) {
      throw new GraspError(
        'CONFIG_INVALID',
        `judge.${name} must be a whole number from ${least}, got ${value}`,
      )
    }
  }
  const endpoint = endpointOf(options.url, options.allowInsecure ?? false)
  const address = `${endpoint.origin}${endpoint.pathname}`
  const key = await readKey(options.apiKeyEnv, options.apiKeyFile)
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json',
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
  }
  /** A server may echo what it was sent. Before anything is cut to an excerpt, lest half a key is left. */
  const scrub = (text: string) => (key === undefined ? text : text.replaceAll(key, '[key]'))

  /** Whether the server ever answered, and whether it did what it is for. */
  let reached = false
  let serves = false
  const attempt = async (body: string): Promise<Attempt> => {
    const abort = new AbortController()
    const interrupt = () => abort.abort()
    signal?.addEventListener('abort', interrupt)
    const timer = setTimeout(interrupt, timeoutMs)
    try {
      const response = await fetch(endpoint, {
        method: 'POST',
        headers,
        body,
        redirect: 'manual',
        signal: abort.signal,
      })
      reached = true
      const received = await readBody(response)
      const said = received === undefined ? undefined : scrub(received)
      return readAttempt(response.status, said, response.headers.get('retry-after'))
    } catch (error) {
      if (signal?.aborted) throw interrupted()
      if (error instanceof GraspError) throw error
      return {
        retry: abort.signal.aborted
          ? `no answer within ${timeoutMs} ms`
          : `no answer: ${networkError(error)}`,
      }
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', interrupt)
    }
  }

  const places = new Places(concurrency)
  return {
    address,
    async complete(body) {
      const text = JSON.stringify(body)
      await places.take()
      try {
        for (let done = 1; ; done++) {
          if (signal?.aborted) throw interrupted()
          const result = await attempt(text)
          // Also what it has against a single request is its work.
          serves ||= !('retry' in result)
          if ('text' in result) return { text: scrub(result.text) }
          if ('failed' in result) return result
          if (done > retries) {
            const failed = `${result.retry} (${done} attempts)`
            if (serves) return { failed }
            const question = reached
              ? 'it has not given a single completion yet: does the server work, and is judge.url its address?'
              : 'is the server running, and judge.url its address?'
            throw new GraspError('JUDGE_FAILED', `${failed}; ${question}`)
          }
          const backoff = backoffMs * 2 ** (done - 1) * (0.5 + Math.random() / 2)
          await sleep(Math.min(maxDelayMs, Math.max(backoff, result.afterMs ?? 0)), signal)
        }
      } catch (error) {
        throw error instanceof GraspError && error.code === 'JUDGE_FAILED'
          ? new GraspError('JUDGE_FAILED', `${address}: ${error.message}`)
          : error
      } finally {
        places.give()
      }
    },
  }
}

function readAttempt(status: number, body: string | undefined, retryAfter: string | null): Attempt {
  const said = body === undefined ? 'more than 1 MiB' : excerpt(body) || 'an empty body'
  if (status >= 300 && status < 400) {
    throw new GraspError(
      'JUDGE_FAILED',
      `HTTP ${status}, a redirect, which is not followed; set judge.url to its target`,
    )
  }
  if (status === 401 || status === 403) {
    throw new GraspError(
      'JUDGE_FAILED',
      `HTTP ${status}: the key was refused; check judge.apiKeyEnv or judge.apiKeyFile. Server: ${said}`,
    )
  }
  if (status === 404 || status === 405) {
    throw new GraspError(
      'JUDGE_FAILED',
      `HTTP ${status}: check judge.url (it ends before /chat/completions) and judge.model. Server: ${said}`,
    )
  }
  if (status === 408 || status === 429 || status >= 500) {
    const afterMs = retryAfterMs(retryAfter)
    const retry = `HTTP ${status}: ${said}`
    return afterMs === undefined ? { retry } : { retry, afterMs }
  }
  if (status >= 400) return { failed: `HTTP ${status}: ${said}` }
  if (body === undefined) return { retry: 'the body is longer than 1 MiB' }
  const text = contentOf(body)
  return text === undefined ? { retry: `not a chat completion: ${said}` } : { text }
}

/** `choices[0].message.content`; a null content (a refusal, nothing but reasoning) is an empty text. */
function contentOf(body: string): string | undefined {
  let value: { choices?: readonly { message?: { content?: unknown } }[] } | null
  try {
    value = JSON.parse(body)
  } catch {
    // The caller reports the body.
    return undefined
  }
  const message = Array.isArray(value?.choices) ? value.choices[0]?.message : undefined
  if (message?.content === null) return ''
  return typeof message?.content === 'string' ? message.content : undefined
}

/** The body as text, or undefined when it is too long. */
async function readBody(response: Response): Promise<string | undefined> {
  if (!response.body) return ''
  const chunks: Uint8Array[] = []
  let length = 0
  // Leaving the loop cancels the rest of the body.
  for await (const chunk of response.body) {
    length += chunk.length
    if (length > MOST_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Seconds, or a date (RFC 9110, 10.2.3). */
function retryAfterMs(header: string | null): number | undefined {
  if (header === null) return undefined
  const ms = /^\s*\d+(\.\d+)?\s*$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

/** `fetch` says only "fetch failed" or "terminated"; the reason is in its cause. */
function networkError(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return (cause as { code?: string }).code ?? describeError(cause)
}

function interrupted(): GraspError {
  return new GraspError('INTERRUPTED', 'judging was stopped')
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise(resolve => {
    const wake = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', wake)
      resolve()
    }
    const timer = setTimeout(wake, ms)
    signal?.addEventListener('abort', wake)
    if (signal?.aborted) wake()
  })
}

/** A counted number of places, handed on in order of asking. */
class Places {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  async take(): Promise<void> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>(resolve => this.#waiting.push(resolve))
  }

  give(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#free++
  }
}

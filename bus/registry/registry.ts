/**
 * A schema registry by the API of Confluent's, which Apicurio, Karapace and Redpanda speak too: only what records
 * need, which is to register a subject's schema and to get a schema by its id.
 */
import { setMaxListeners } from 'node:events'
import { performance } from 'node:perf_hooks'
import { setTimeout } from 'node:timers/promises'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import { tlsAdvice } from '../tls-advice.ts'
import { type Certificates, type JsonAnswer, type JsonRequest, requestJson } from './http.ts'

export interface RegistryOptions {
  /** Base URL, without user or password. */
  readonly url: string
  readonly username?: string
  readonly password?: string
  readonly tls?: Certificates
  /** Longest wait for one answer; 10 s unless told. */
  readonly timeoutMs?: number
  /** How long a registry that does not answer is asked again; 30 s unless told. */
  readonly waitMs?: number
}

const TYPE = 'application/vnd.schemaregistry.v1+json'
/** Registries and the serialisers of others hold ids as signed numbers of 32 bits. */
export const LARGEST_ID = 2 ** 31 - 1
const FIRST_PAUSE = 200
/** For how long an id is asked for again by which nothing was ever registered, though the subject is there. */
const UNKNOWN_ID_MS = 5000
const LONGEST_PAUSE = 3000

export class Registry {
  readonly url: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #anonymous: boolean
  readonly #tls: Certificates | undefined
  readonly #timeoutMs: number
  readonly #waitMs: number
  readonly #closed = new AbortController()

  constructor({ url, username, password, tls, timeoutMs = 10_000, waitMs = 30_000 }: RegistryOptions) {
    this.url = url.replace(/\/+$/, '')
    const login = Buffer.from(`${username}:${password ?? ''}`).toString('base64')
    this.#headers = {
      Accept: `${TYPE}, application/json`,
      'Content-Type': TYPE,
      ...(username === undefined ? {} : { Authorization: `Basic ${login}` }),
    }
    this.#anonymous = username === undefined
    this.#tls = tls
    this.#timeoutMs = timeoutMs
    this.#waitMs = waitMs
    setMaxListeners(0, this.#closed.signal)
  }

  /**
   * The id of a subject's schema (JSON), which becomes the subject's newest version unless it is one already. A
   * subject without a rule of its own gets BACKWARD: every version must be able to read the one before.
   *
   * Errors: LOG_MISMATCH where the registry refuses the schema; LOG_UNAVAILABLE where it cannot be used.
   */
  async register(subject: string, schema: string): Promise<number> {
    const path = `/subjects/${encodeURIComponent(subject)}`
    const body = { schema, schemaType: 'AVRO' }
    // Nothing but a look where it is there already, which needs no right to write.
    const known = await this.#lookUp(path, body)
    if (known !== undefined) return known
    await this.#setRule(subject)
    const answer = await this.#ask('POST', `${path}/versions`, body)
    if (answer.status === 200) return this.#id(answer)
    if (!isRefusal(answer)) throw this.#unexpected(answer)
    // Another process may have been quicker.
    const now = await this.#lookUp(path, body)
    if (now !== undefined) return now
    throw new GraspError(
      'LOG_MISMATCH',
      `the schema registry at ${this.url} refuses the schema of ${subject}: ${messageOf(answer)}. Another version ` +
        'of this software wrote it before: use that one, or start another run with --set run=NAME',
    )
  }

  /** The schema with this id, as JSON; undefined where the registry knows none. Errors: LOG_UNAVAILABLE. */
  async schema(id: number): Promise<string | undefined> {
    const answer = await this.#ask('GET', `/schemas/ids/${id}`)
    if (isAbsent(answer)) return undefined
    const schema = (answer.body as { schema?: unknown } | undefined)?.schema
    if (answer.status !== 200 || typeof schema !== 'string') throw this.#unexpected(answer)
    return schema
  }

  /**
   * The schema with an id that a record of the subject has: `unknown` where the registry knows the subject alone,
   * undefined where it knows neither. It is asked again for a while, since one that has just started answers before
   * it has read what it keeps. Errors: LOG_UNAVAILABLE.
   */
  async schemaOf(subject: string, id: number): Promise<{ json: string } | 'unknown' | undefined> {
    const start = performance.now()
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      const json = await this.schema(id)
      if (json !== undefined) return { json }
      const known = await this.#hasSubject(subject)
      const spent = performance.now() - start + pause
      if (known && spent > Math.min(this.#waitMs, UNKNOWN_ID_MS)) return 'unknown'
      if (!known && spent > this.#waitMs) return undefined
      await this.#pause(pause)
    }
  }

  /** Whether any schema was registered under this subject. */
  async #hasSubject(subject: string): Promise<boolean> {
    const answer = await this.#ask('GET', `/subjects/${encodeURIComponent(subject)}/versions`)
    if (answer.status !== 200 && !isAbsent(answer)) throw this.#unexpected(answer)
    return answer.status === 200
  }

  /** Errors: LOG_UNAVAILABLE where the registry cannot be used. */
  async check(): Promise<void> {
    const answer = await this.#ask('GET', '/config')
    if (answer.status !== 200) throw this.#unexpected(answer)
  }

  /** Whatever waits for an answer rejects with LOG_UNAVAILABLE, now and from now on. */
  close(): void {
    this.#closed.abort()
  }

  async #lookUp(path: string, body: unknown): Promise<number | undefined> {
    const answer = await this.#ask('POST', path, body)
    return isAbsent(answer) ? undefined : this.#id(answer)
  }

  async #setRule(subject: string): Promise<void> {
    const path = `/config/${encodeURIComponent(subject)}`
    const present = await this.#ask('GET', path)
    if (present.status === 200) return
    if (!isAbsent(present)) throw this.#unexpected(present)
    const answer = await this.#ask('PUT', path, { compatibility: 'BACKWARD' })
    // 409: another process did the same at this moment (Apicurio).
    if (answer.status !== 200 && answer.status !== 409) throw this.#unexpected(answer)
  }

  #id(answer: JsonAnswer): number {
    const id = (answer.body as { id?: unknown } | undefined)?.id
    if (answer.status === 200 && Number.isInteger(id) && Number(id) >= 0 && Number(id) <= LARGEST_ID)
      return Number(id)
    throw this.#unexpected(answer)
  }

  /** Asks again for a while where there is no answer, or one that says that it may be better later. */
  async #ask(method: JsonRequest['method'], path: string, body?: unknown): Promise<JsonAnswer> {
    const request: JsonRequest = {
      method,
      url: `${this.url}${path}`,
      headers: this.#headers,
      timeoutMs: this.#timeoutMs,
      signal: this.#closed.signal,
      ...(body === undefined ? {} : { body }),
      ...(this.#tls === undefined ? {} : { tls: this.#tls }),
    }
    const start = performance.now()
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      let fault: string
      let cause: unknown
      try {
        const answer = await requestJson(request)
        if (answer.status < 500 && answer.status !== 429) return answer
        fault = `answered ${answer.status}: ${messageOf(answer)}`
      } catch (error) {
        cause = error
        this.#checkOpen()
        const tls = tlsAdvice(error, 'log.registry.tls')
        fault = `cannot be reached: ${tls ?? networkFault(error)}`
        // Another try changes nothing about a certificate; a server that is starting may hang up.
        if (tls !== undefined && (error as { code?: unknown }).code !== 'ECONNRESET') {
          throw new GraspError('LOG_UNAVAILABLE', `the schema registry at ${this.url} ${fault}`, { cause })
        }
      }
      const spent = performance.now() - start
      if (spent + pause > this.#waitMs) {
        const seconds = Math.round(spent / 1000)
        throw this.#unavailable(seconds > 0 ? `${fault} (asked for ${seconds} s)` : fault, cause)
      }
      await this.#pause(pause)
    }
  }

  async #pause(milliseconds: number): Promise<void> {
    await setTimeout(milliseconds, undefined, { signal: this.#closed.signal }).catch(() => this.#checkOpen())
  }

  #checkOpen(): void {
    if (!this.#closed.signal.aborted) return
    throw new GraspError(
      'LOG_UNAVAILABLE',
      `the schema registry at ${this.url} is no longer asked: the log was closed`,
    )
  }

  #unavailable(fault: string, cause?: unknown): GraspError {
    const remedy = 'start it, or correct log.registry.url, or leave log.registry out'
    return new GraspError('LOG_UNAVAILABLE', `the schema registry at ${this.url} ${fault}; ${remedy}`, {
      cause,
    })
  }

  #unexpected(answer: JsonAnswer): GraspError {
    const { status } = answer
    if (status === 401 || status === 403) {
      const said = this.#anonymous
        ? `wants a user (${status}): set log.registry.username and log.registry.passwordEnv`
        : `refuses this user (${status}): check log.registry.username and its password`
      return new GraspError('LOG_UNAVAILABLE', `the schema registry at ${this.url} ${said}`)
    }
    const hint = status === 404 || status === 200 ? '; is log.registry.url the base of a Confluent API?' : ''
    const message = `the schema registry at ${this.url} answered ${status}: ${messageOf(answer)}${hint}`
    return new GraspError('LOG_UNAVAILABLE', message)
  }
}

/** Subject, version, schema or rule are not there, which the registry says by a code of its own. */
function isAbsent({ status, body }: JsonAnswer): boolean {
  return (
    status === 404 && /^404\d\d$/.test(String((body as { error_code?: unknown } | undefined)?.error_code))
  )
}

/** The schema itself is what is not taken: it is no valid one, or the subject's rule does not allow it. */
function isRefusal({ status, body }: JsonAnswer): boolean {
  // 42205: the registry, or the subject, is only to be read at the moment.
  return (
    status === 409 || (status === 422 && (body as { error_code?: unknown } | undefined)?.error_code !== 42205)
  )
}

function messageOf({ body }: JsonAnswer): string {
  const message = (body as { message?: unknown } | undefined)?.message
  return typeof message === 'string' ? message.slice(0, 500) : 'without a message'
}

function networkFault(error: unknown): string {
  const { name, code, errors } = error as { name?: string; code?: string; errors?: readonly unknown[] }
  if (name === 'TimeoutError') return 'it did not answer in time'
  // Several addresses of one name: the first says enough.
  if (describeError(error) === '' && errors?.[0] !== undefined) return networkFault(errors[0])
  const text = describeError(error)
  return code === undefined || text.includes(code) ? text : `${text} (${code})`
}

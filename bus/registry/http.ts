/** One HTTP request with JSON in and out, over TLS with own certificates where needed (Node's `fetch` takes none). */
import { request as httpRequest, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'

/** PEM texts. */
export interface Certificates {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
}

export interface JsonRequest {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
  /** For the whole exchange. */
  readonly timeoutMs: number
  /** Ends the exchange early. */
  readonly signal: AbortSignal
  readonly tls?: Certificates
}

export interface JsonAnswer {
  readonly status: number
  /** Undefined where it is no JSON. */
  readonly body: unknown
}

const ANSWER_LIMIT = 16 << 20

/**
 * Rejects with the system's error where there is no answer, with a TimeoutError where it takes too long, with the
 * signal's reason where that ends it.
 */
export function requestJson({
  method,
  url,
  headers,
  body,
  timeoutMs,
  signal,
  tls = {},
}: JsonRequest): Promise<JsonAnswer> {
  const data = body === undefined ? undefined : JSON.stringify(body)
  const options: RequestOptions = {
    method,
    headers: { ...headers, ...(data === undefined ? {} : { 'Content-Length': Buffer.byteLength(data) }) },
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  }
  return new Promise((resolve, reject) => {
    const secure = new URL(url).protocol === 'https:'
    const request = secure ? httpsRequest(url, { ...options, ...tls }) : httpRequest(url, options)
    request.on('error', error => reject(options.signal?.aborted ? options.signal.reason : error))
    request.on('response', response => {
      const parts: Buffer[] = []
      let size = 0
      response.on('data', (part: Buffer) => {
        size += part.length
        if (size > ANSWER_LIMIT)
          response.destroy(new Error(`the answer is longer than ${ANSWER_LIMIT} bytes`))
        else parts.push(part)
      })
      response.on('error', error => reject(options.signal?.aborted ? options.signal.reason : error))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: parse(Buffer.concat(parts)) }),
      )
    })
    request.end(data)
  })
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

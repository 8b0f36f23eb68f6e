/**
 * A server that speaks the hub's protocol, on 127.0.0.1: the list of a revision's files, `resolve` with the hub's
 * headers and redirects (small files to another path of the hub, large ones to a second server with signed
 * addresses), ranges, error codes. Tests script its troubles.
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export const COMMIT = '0123456789abcdef0123456789abcdef01234567'
const SIGNATURE = 'Signature=s3cret&Expires=99'

export interface Asked {
  /** `storage` is the second server, which is another origin. */
  readonly at: 'hub' | 'storage'
  readonly path: string
  readonly headers: IncomingHttpHeaders
}

/** Answers instead of the server when it returns true. */
export type Trouble = (asked: Asked, response: ServerResponse, content: Buffer) => boolean

export interface HubFiles {
  readonly [path: string]: Buffer | string
}

export class HubServer implements AsyncDisposable {
  readonly asked: Asked[] = []
  /** Answers of the storage and of `resolve` under way at the same time, at most. */
  mostAtOnce = 0
  trouble: Trouble = () => false
  /** Changes what the list says. */
  list: (listing: { id: string; sha: string; siblings: Record<string, unknown>[] }) => unknown = listing =>
    listing
  /** What is asked of a reader. */
  token: string | undefined
  gated = false
  readonly #files: ReadonlyMap<string, Buffer>
  readonly #name: string
  #atOnce = 0
  #hub!: Server
  #storage!: Server

  private constructor(name: string, files: HubFiles) {
    this.#name = name
    this.#files = new Map(Object.entries(files).map(([path, content]) => [path, Buffer.from(content)]))
  }

  static async start(name: string, files: HubFiles): Promise<HubServer> {
    const server = new HubServer(name, files)
    server.#hub = await listen((path, headers, response) => server.#answerHub(path, headers, response))
    server.#storage = await listen((path, headers, response) =>
      server.#answerStorage(path, headers, response),
    )
    return server
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#hub.address() as AddressInfo).port}`
  }

  get storage(): string {
    // Another name and another port: another origin in any reading.
    return `http://localhost:${(this.#storage.address() as AddressInfo).port}`
  }

  /** Paths that were asked for, without queries. */
  paths(at: Asked['at']): string[] {
    return this.asked.filter(asked => asked.at === at).map(({ path }) => path.split('?')[0]!)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of [this.#hub, this.#storage]) {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    }
  }

  #answerHub(path: string, headers: IncomingHttpHeaders, response: ServerResponse): unknown {
    const asked: Asked = { at: 'hub', path, headers }
    this.asked.push(asked)
    const content = this.#contentOf(path)
    if (this.trouble(asked, response, content ?? Buffer.alloc(0))) return undefined
    if (this.token !== undefined && headers.authorization !== `Bearer ${this.token}`) {
      if (headers.authorization !== undefined) {
        return refuse(response, 401, undefined, 'Invalid credentials in Authorization header')
      }
      if (!this.gated) return refuse(response, 401, 'RepoNotFound', 'Repository not found')
      if (path.includes('/resolve/')) {
        return refuse(response, 401, 'GatedRepo', `Access to model ${this.#name} is restricted.`)
      }
    }
    const [, listed] = /^\/api\/models\/(.+)\/revision\//.exec(path) ?? []
    const [, resolved] = /^\/(.+)\/resolve\//.exec(path) ?? []
    if (path.startsWith('/api/resolve-cache/')) {
      response.setHeader('X-Repo-Commit', COMMIT)
      response.setHeader('ETag', `"${gitBlobId(content!)}"`)
      return this.#send(response, headers, content!)
    }
    if ((listed ?? resolved) !== this.#name)
      return refuse(response, 404, 'RepoNotFound', 'Repository not found')
    if (listed !== undefined) return this.#sendList(path, response)
    if (!path.includes(`/resolve/${COMMIT}/`))
      return refuse(response, 404, 'RevisionNotFound', 'Invalid rev id')
    if (content === undefined) return refuse(response, 404, 'EntryNotFound', 'Entry not found')
    // Compressed, ranges and sizes would be those of another file.
    if (headers['accept-encoding'] !== 'identity') return refuse(response, 400, undefined, 'not compressed')
    const file = decodeURIComponent(path.split(`/resolve/${COMMIT}/`)[1]!)
    response.setHeader('X-Repo-Commit', COMMIT)
    response.setHeader('X-Linked-Size', content.length)
    if (isLarge(file)) {
      response.setHeader('X-Linked-ETag', `"${sha256(content)}"`)
      response.setHeader('Location', `${this.storage}/${encodeURIComponent(file)}?${SIGNATURE}`)
      return response.writeHead(302).end('Found. Redirecting')
    }
    response.setHeader(
      'Location',
      `/api/resolve-cache/models/${this.#name}/${COMMIT}/${encodeURIComponent(file)}`,
    )
    return response.writeHead(307).end('Temporary Redirect')
  }

  #answerStorage(path: string, headers: IncomingHttpHeaders, response: ServerResponse): unknown {
    const asked: Asked = { at: 'storage', path, headers }
    this.asked.push(asked)
    const content = this.#contentOf(path)!
    if (this.trouble(asked, response, content)) return undefined
    if (!path.endsWith(SIGNATURE)) return refuse(response, 403, undefined, 'no signature')
    return this.#send(response, headers, content)
  }

  #sendList(path: string, response: ServerResponse): unknown {
    const { pathname, searchParams } = new URL(path, this.endpoint)
    const revision = decodeURIComponent(pathname.split('/revision/')[1]!)
    if (!['main', 'refs/pr/1', COMMIT].includes(revision)) {
      return refuse(response, 404, 'RevisionNotFound', `Invalid rev id: ${revision}`)
    }
    const siblings = [...this.#files].map(([rfilename, content]) => {
      if (searchParams.get('blobs') !== 'true') return { rfilename }
      const lfs = { sha256: sha256(content), size: content.length, pointerSize: 134 }
      return {
        rfilename,
        size: content.length,
        blobId: gitBlobId(content),
        ...(isLarge(rfilename) ? { lfs } : {}),
      }
    })
    const listing = this.list({ id: this.#name, sha: COMMIT, siblings })
    return response.setHeader('content-type', 'application/json').end(JSON.stringify(listing))
  }

  #send(response: ServerResponse, headers: IncomingHttpHeaders, content: Buffer): unknown {
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce)
    response.on('close', () => this.#atOnce--)
    // A moment, in which further ones may be asked for.
    return setTimeout(() => sendRange(response, headers, content), 20)
  }

  #contentOf(path: string): Buffer | undefined {
    const decoded = decodeURIComponent(path.split('?')[0]!)
    const [file] = [...this.#files.keys()]
      .filter(name => decoded.endsWith(`/${name}`))
      .sort((a, b) => b.length - a.length)
    return file === undefined ? undefined : this.#files.get(file)
  }
}

export function sendRange(response: ServerResponse, headers: IncomingHttpHeaders, content: Buffer): void {
  const from = Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0)
  if (from > 0 && from >= content.length) {
    response.setHeader('content-range', `bytes */${content.length}`)
    response.writeHead(416).end()
    return
  }
  if (from > 0) response.setHeader('content-range', `bytes ${from}-${content.length - 1}/${content.length}`)
  response.setHeader('content-length', content.length - from)
  response.writeHead(from > 0 ? 206 : 200).end(content.subarray(from))
}

/** Announces all, sends so many bytes of what was asked for, and cuts the connection. */
export function sendAndCut(
  response: ServerResponse,
  headers: IncomingHttpHeaders,
  content: Buffer,
  count: number,
): void {
  const from = Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0)
  if (from > 0) response.setHeader('content-range', `bytes ${from}-${content.length - 1}/${content.length}`)
  response.setHeader('content-length', content.length - from)
  response.writeHead(from > 0 ? 206 : 200)
  response.write(content.subarray(from, from + count), () => setTimeout(() => response.destroy(), 20))
}

export function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

export function gitBlobId(content: Buffer): string {
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex')
}

function isLarge(path: string): boolean {
  return /\.(safetensors|gguf|bin|onnx)$/.test(path)
}

function refuse(
  response: ServerResponse,
  status: number,
  code: string | undefined,
  message: string,
): ServerResponse {
  if (code !== undefined) response.setHeader('X-Error-Code', code)
  response.setHeader('X-Error-Message', message)
  response.setHeader('content-type', 'application/json')
  return response.writeHead(status).end(JSON.stringify({ error: message }))
}

async function listen(
  answer: (path: string, headers: IncomingHttpHeaders, response: ServerResponse) => unknown,
): Promise<Server> {
  const server = createServer((request, response) => answer(request.url!, request.headers, response))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return server
}

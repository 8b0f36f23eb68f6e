/**
 * One file of a repository: into `NAME.part`, and under its own name once its hash is the hub's. What a broken
 * connection or a stopped process left in the part is kept, and the rest asked for by a range.
 */
import { mkdir, open, rename, rm, truncate } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { GraspError } from '../errors/grasp-error.ts'
import type { HubAccess } from './access.ts'
import type { HubFile } from './listing.ts'
import type { Repository } from './repository.ts'
import { type Answer, request } from './request.ts'
import { type RetryOptions, Transient, withRetries } from './retry.ts'
import { contentHash, lengthOf } from './verify.ts'

export interface DownloadOptions extends RetryOptions {
  readonly access: HubAccess
  /** At a commit, which does not move. */
  readonly repository: Repository
  readonly folder: string
  /** Bytes that arrived; negative for those that had to be thrown away. */
  readonly arrived: (bytes: number) => void
}

export function partOf(path: string): string {
  return `${path}.part`
}

/** @throws GraspError HUB_FAILED, INTERRUPTED: the part stays unless its content is wrong. */
export async function download(file: HubFile, options: DownloadOptions): Promise<void> {
  const path = join(options.folder, file.path)
  const part = partOf(path)
  await mkdir(dirname(path), { recursive: true })
  // A part of another version has another hash in the end: then once more, from the start.
  const isResumed = ((await lengthOf(part)) ?? 0) > 0
  let found = await fetchAndHash(file, part, options)
  if (found !== file.id.hash && isResumed) {
    options.tell(`${file.path}: the part that was there is of another content; fetching all of it`)
    await drop(part, file.bytes, options)
    found = await fetchAndHash(file, part, options)
  }
  if (found !== file.id.hash) {
    await drop(part, file.bytes, options)
    throw new GraspError(
      'HUB_FAILED',
      `${file.path} has the ${file.id.kind === 'git' ? 'git blob id' : 'sha256'} ${found}, but the hub names ` +
        `${file.id.hash}: it was changed on the way. Try again, perhaps over another network or HF_ENDPOINT.`,
    )
  }
  await rename(part, path)
}

async function drop(part: string, bytes: number, { arrived }: DownloadOptions): Promise<void> {
  await rm(part, { force: true })
  arrived(-bytes)
}

async function fetchAndHash(file: HubFile, part: string, options: DownloadOptions): Promise<string> {
  let furthest = (await lengthOf(part)) ?? 0
  const attempt = async () => {
    try {
      await fetchRest(file, part, options)
    } catch (error) {
      if (!(error instanceof Transient)) throw error
      // Bytes alone are no progress: a server that ignores ranges may break off at the same place for ever.
      const reached = (await lengthOf(part)) ?? 0
      error.progressed = reached > furthest
      furthest = Math.max(furthest, reached)
      throw error
    }
  }
  await withRetries(file.path, attempt, options)
  // What is on the disk is hashed, and not what passed by: it is the file that is used.
  return contentHash(part, file, options.signal)
}

/** Asks for what the part lacks and writes it there, durably. */
async function fetchRest(file: HubFile, part: string, options: DownloadOptions): Promise<void> {
  const { access, repository, signal, silenceMs, arrived } = options
  let have = (await lengthOf(part)) ?? 0
  if (have > file.bytes) {
    await truncate(part, 0)
    have = 0
  }
  if (have === file.bytes && have > 0) return
  const address = file.path.split('/').map(encodeURIComponent).join('/')
  const path = `${repository.name}/resolve/${repository.revision}/${address}`
  const headers = have > 0 ? { range: `bytes=${have}-` } : {}
  await request({ access, repository, path, headers, signal, silenceMs }, async answer => {
    checkCommit(answer.first, file, options)
    if (answer.status === 416) {
      await truncate(part, 0)
      arrived(-have)
      throw new Transient(`the hub has no bytes from ${have} on`)
    }
    const start = startOf(answer, have)
    if (start !== have) arrived(start - have)
    await writePart(part, start, answer.body, file, arrived)
  })
}

async function writePart(
  part: string,
  start: number,
  body: AsyncIterable<Uint8Array>,
  { path, bytes }: HubFile,
  arrived: (bytes: number) => void,
): Promise<void> {
  const target = await open(part, start === 0 ? 'w' : 'r+')
  try {
    let position = start
    for await (const piece of body) {
      if (position + piece.length > bytes) {
        throw new GraspError(
          'HUB_FAILED',
          `${path}: more came than the ${bytes} bytes that the hub names. Try again, perhaps over another network or HF_ENDPOINT.`,
        )
      }
      for (let done = 0; done < piece.length; ) {
        done += (await target.write(piece, done, piece.length - done, position + done)).bytesWritten
      }
      position += piece.length
      arrived(piece.length)
    }
    await target.sync()
    if (position < bytes) {
      throw new Transient(`the connection ended after ${position} of ${bytes} bytes`)
    }
  } finally {
    await target.close()
  }
}

/** Where the answer's bytes belong. A server may ignore the range and send everything. */
function startOf({ status, headers }: Answer, have: number): number {
  if (have === 0 || status === 200) return 0
  const range = /^bytes (\d+)-/.exec(headers.get('content-range') ?? '')
  if (status === 206 && range !== null && Number(range[1]) <= have) return Number(range[1])
  throw new Transient(`the hub did not answer with the rest from byte ${have}`)
}

/** The commit is in the address; a server that answers with another one would mix two models. */
function checkCommit(headers: Headers, { path }: HubFile, { repository }: DownloadOptions): void {
  const commit = headers.get('x-repo-commit')
  if (commit === null || commit === repository.revision) return
  throw new GraspError(
    'HUB_FAILED',
    `${path} was asked for at commit ${repository.revision}, and the hub answered with commit ${commit}`,
  )
}

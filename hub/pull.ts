/**
 * Fetches a model's files from the hub into a folder, several at a time. What is there and unchanged is not fetched
 * again, what is there in part is completed, and every file is checked against the hub's hash.
 */
import { mkdir, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { describeError, GraspError } from '../errors/grasp-error.ts'
import type { HubAccess } from './access.ts'
import { download, partOf } from './download.ts'
import { type HubFile, type Listing, listing } from './listing.ts'
import { joinRecords, type PullRecord, readRecord, writeRecord } from './record.ts'
import type { Repository } from './repository.ts'
import type { RetryOptions } from './retry.ts'
import { isComplete, lengthOf } from './verify.ts'
import { wantedBy } from './wanted.ts'

/** At the same time: enough to use the line while small files wait for answers, too few to annoy the hub. */
const FILES_AT_ONCE = 4

export interface PullProgress {
  /** Of `totalBytes`, those that are there. */
  readonly bytes: number
  readonly totalBytes: number
  /** Of `totalFiles`, those that are complete and verified. */
  readonly files: number
  readonly totalFiles: number
}

export interface PullOptions extends RetryOptions {
  readonly access: HubAccess
  readonly repository: Repository
  readonly folder: string
  /** Patterns of the files to fetch, instead of those that a model needs. */
  readonly include?: readonly string[]
  readonly progress: (progress: PullProgress) => void
}

export interface Pulled {
  readonly commit: string
  readonly files: number
  readonly bytes: number
  /** Bytes that were not there before. */
  readonly fetchedBytes: number
}

/**
 * @throws GraspError HUB_FAILED, naming the file and what to do; INTERRUPTED when the signal was aborted. The same
 * call goes on from what has arrived.
 */
export async function pull(options: PullOptions): Promise<Pulled> {
  const { folder, signal } = options
  try {
    return await pullInto(options)
  } catch (cause) {
    if (signal.aborted) {
      const message = `stopped; the same command goes on from what is in ${folder}`
      throw new GraspError('INTERRUPTED', message, { cause })
    }
    if (cause instanceof GraspError) throw cause
    const code = (cause as NodeJS.ErrnoException).code
    const help =
      code === 'ENOSPC' || code === 'EDQUOT'
        ? 'the disk is full. Free some space; the same command goes on from what has arrived.'
        : `${describeError(cause)}. Check the folder and its permissions, or give another with --to.`
    throw new GraspError('HUB_FAILED', `${folder}: ${help}`, { cause })
  }
}

async function pullInto(options: PullOptions): Promise<Pulled> {
  const { access, repository, folder } = options
  const before = await readRecord(folder, repository.name)
  const { commit, files } = await wantedFiles(options)
  const record = joinRecords(folder, before, recordOf(options, commit, files))
  await mkdir(folder, { recursive: true })
  await writeRecord(folder, { ...record, complete: false })

  const progress = new Progress(files, options.progress)
  const missing: HubFile[] = []
  for (const file of files) {
    if (await isThere(file, before, options)) progress.has(file)
    else missing.push(file)
  }
  const had = await partialBytes(folder, missing)
  progress.add(had)
  const needed = sum(missing) - had
  await checkSpace(folder, needed)
  await inParallel(missing, options.signal, async (file, signal) => {
    await download(file, {
      ...options,
      access,
      signal,
      repository: { ...repository, revision: commit },
      arrived: bytes => progress.add(bytes),
    })
    progress.finished()
  })
  await writeRecord(folder, record)
  return { commit, files: files.length, bytes: sum(files), fetchedBytes: needed }
}

async function wantedFiles(options: PullOptions): Promise<Listing> {
  const { access, repository, include = [] } = options
  const every: string[] | undefined = include.length === 0 ? [] : undefined
  const isWanted = wantedBy(include)
  const wanted = (path: string) => {
    every?.push(path)
    return isWanted(path)
  }
  const found = await listing(access, repository, wanted, options)
  if (found.files.length === 0 && include.length > 0) {
    throw failed(`${repository.name} has no file that matches ${include.join(' or ')}`)
  }
  if (every !== undefined && !found.files.some(({ path }) => path.endsWith('.safetensors'))) {
    const others = every.filter(path => /\.(gguf|bin|pt|pth|onnx|safetensors)$/.test(path)).slice(0, 5)
    const there =
      others.length === 0 ? 'no weights' : `no safetensors beside its settings, but ${others.join(', ')}`
    throw failed(
      `${repository.name} holds ${there}. Name what to fetch with --include, or another repository.`,
    )
  }
  return found
}

/** Whether the file is complete. One that was changed since it was fetched is fetched again, and that is said. */
async function isThere(
  file: HubFile,
  before: PullRecord | undefined,
  options: PullOptions,
): Promise<boolean> {
  const path = join(options.folder, file.path)
  if ((await lengthOf(path)) === undefined) return false
  if (await isComplete(path, file, options.signal)) return true
  const former = before?.files[file.path]
  const isNewer = former !== undefined && (former.sha256 ?? former.git) !== file.id.hash
  options.tell(
    `${file.path}: the one that is there is ${isNewer ? 'of another version' : 'damaged or was changed'}; fetching it again`,
  )
  return false
}

async function partialBytes(folder: string, files: readonly HubFile[]): Promise<number> {
  let bytes = 0
  for (const file of files) {
    const length = (await lengthOf(partOf(join(folder, file.path)))) ?? 0
    if (length <= file.bytes) bytes += length
  }
  return bytes
}

async function checkSpace(folder: string, needed: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  if (free >= needed) return
  throw failed(
    `${folder} has ${megabytes(free)} free, and ${megabytes(needed)} are to come. Free some space first.`,
  )
}

/** The first failure stops the others; what they have so far stays. */
async function inParallel(
  files: readonly HubFile[],
  signal: AbortSignal,
  work: (file: HubFile, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const failure = new AbortController()
  const either = AbortSignal.any([signal, failure.signal])
  const queue = [...files]
  let first: { readonly error: unknown } | undefined
  const worker = async () => {
    for (let file = queue.shift(); file !== undefined && !either.aborted; file = queue.shift()) {
      try {
        await work(file, either)
      } catch (error) {
        first ??= { error }
        failure.abort()
      }
    }
  }
  await Promise.all(Array.from({ length: FILES_AT_ONCE }, worker))
  if (first !== undefined) throw first.error
  signal.throwIfAborted()
}

function recordOf(
  { access, repository }: PullOptions,
  commit: string,
  files: readonly HubFile[],
): PullRecord {
  return {
    repository: repository.name,
    revision: repository.revision,
    commit,
    endpoint: access.endpoint,
    complete: true,
    files: Object.fromEntries(files.map(({ path, bytes, id }) => [path, { bytes, [id.kind]: id.hash }])),
  }
}

class Progress {
  readonly #tell: (progress: PullProgress) => void
  readonly #totalBytes: number
  readonly #totalFiles: number
  #bytes = 0
  #files = 0

  constructor(files: readonly HubFile[], tell: (progress: PullProgress) => void) {
    this.#tell = tell
    this.#totalBytes = sum(files)
    this.#totalFiles = files.length
  }

  add(bytes: number): void {
    this.#bytes += bytes
    this.#tell({
      bytes: this.#bytes,
      totalBytes: this.#totalBytes,
      files: this.#files,
      totalFiles: this.#totalFiles,
    })
  }

  finished(): void {
    this.#files++
    this.add(0)
  }

  has(file: HubFile): void {
    this.#files++
    this.add(file.bytes)
  }
}

function sum(files: readonly HubFile[]): number {
  return files.reduce((total, { bytes }) => total + bytes, 0)
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6)} MB`
}

function failed(message: string): GraspError {
  return new GraspError('HUB_FAILED', message)
}

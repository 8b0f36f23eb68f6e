/** The files of a repository at a commit: GET api/models/REPO/revision/REV?blobs=true. */
import { z } from 'zod'
import { describeError, GraspError } from '../errors/grasp-error.ts'
import type { HubAccess } from './access.ts'
import type { Repository } from './repository.ts'
import { request } from './request.ts'
import { type RetryOptions, withRetries } from './retry.ts'

/** A large file's sha256 (LFS), or the id of its git blob. */
export interface ContentId {
  readonly kind: 'sha256' | 'git'
  readonly hash: string
}

export interface HubFile {
  /** Relative to the repository, with `/`; stays within a folder that it is joined to. */
  readonly path: string
  readonly bytes: number
  readonly id: ContentId
}

export interface Listing {
  /** What the revision stands for now. */
  readonly commit: string
  readonly files: readonly HubFile[]
}

const size = z.number().int().nonnegative()
const listingSchema = z.looseObject({
  sha: z.string().regex(/^[0-9a-f]{40}$/),
  siblings: z.array(
    z.looseObject({
      rfilename: z.string(),
      size: size.optional(),
      blobId: z
        .string()
        .regex(/^[0-9a-f]{40}$/)
        .optional(),
      lfs: z.looseObject({ sha256: z.string().regex(/^[0-9a-f]{64}$/), size }).nullish(),
    }),
  ),
})

/** More than any list of files: a server that sends for ever is cut off. */
const MOST_BYTES = 64 * 1024 * 1024

/** @throws GraspError HUB_FAILED when there is no such repository or revision, or the answer is no list of files. */
export async function listing(
  access: HubAccess,
  repository: Repository,
  wanted: (path: string) => boolean,
  retry: RetryOptions,
): Promise<Listing> {
  const { name, revision } = repository
  const path = `api/models/${name}/revision/${encodeURIComponent(revision)}?blobs=true`
  const text = await withRetries(
    name,
    () =>
      request({ access, repository, path, ...retry }, async ({ body }) => {
        const pieces: Uint8Array[] = []
        let length = 0
        for await (const piece of body) {
          length += piece.length
          if (length > MOST_BYTES) throw wrong(access, name, 'it does not end')
          pieces.push(piece)
        }
        return Buffer.concat(pieces).toString('utf8')
      }),
    { ...retry, firstContact: true },
  )
  let parsed: z.infer<typeof listingSchema>
  try {
    parsed = listingSchema.parse(JSON.parse(text))
  } catch (cause) {
    const what =
      cause instanceof z.ZodError ? z.prettifyError(cause).replace(/\s+/g, ' ') : describeError(cause)
    throw wrong(access, name, what, cause)
  }
  const files = parsed.siblings.filter(({ rfilename }) => wanted(rfilename))
  return {
    commit: parsed.sha,
    files: files.map(({ rfilename: path, size: bytes, blobId, lfs }) => {
      if (!isSafe(path)) throw wrong(access, name, `it names the file ${JSON.stringify(path)}`)
      if (lfs) return { path, bytes: lfs.size, id: { kind: 'sha256', hash: lfs.sha256 } }
      if (bytes === undefined || blobId === undefined) {
        throw wrong(access, name, `it lacks the size or the hash of ${path}`)
      }
      return { path, bytes, id: { kind: 'git', hash: blobId } }
    }),
  }
}

/** Names that stay inside a folder on every system, and are no partial file of ours. */
function isSafe(path: string): boolean {
  const isName = (part: string) => part !== '' && part !== '.' && part !== '..'
  return path.split('/').every(isName) && !/[\x00-\x1f\x7f\\:]/.test(path) && !path.endsWith('.part')
}

function wrong({ endpoint }: HubAccess, name: string, what: string, cause?: unknown): GraspError {
  const message = `${new URL(endpoint).host} gave no usable list of the files of ${name}: ${what}`
  return new GraspError('HUB_FAILED', message, cause === undefined ? undefined : { cause })
}

/** Whether a file on the disk is what the hub names. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import type { HubFile } from './listing.ts'

/** The file's length; undefined where there is none. */
export async function lengthOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Reads the whole file. @returns its hash (hex), of the kind that the hub gave. */
export async function contentHash(
  path: string,
  { bytes, id }: HubFile,
  signal: AbortSignal,
): Promise<string> {
  const hash = createHash(id.kind === 'git' ? 'sha1' : 'sha256')
  // Git hashes a blob with its type and length before it.
  if (id.kind === 'git') hash.update(`blob ${bytes}\0`)
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash, { signal })
  return hash.digest('hex')
}

/** Whether the file is there, whole and unchanged. */
export async function isComplete(path: string, file: HubFile, signal: AbortSignal): Promise<boolean> {
  if ((await lengthOf(path)) !== file.bytes) return false
  return (await contentHash(path, file, signal)) === file.id.hash
}

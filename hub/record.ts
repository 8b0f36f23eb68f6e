/**
 * `.grasp-pull.json` in a folder of fetched files: what they are and which commit they come from, so that a run can
 * be repeated on another machine. Its presence also says that the folder is ours to complete.
 */
import { open, readdir, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { describeError, GraspError } from '../errors/grasp-error.ts'

export const RECORD_FILE = '.grasp-pull.json'

const recordSchema = z.object({
  repository: z.string(),
  /** As it was asked for. */
  revision: z.string(),
  /** What the revision stood for. */
  commit: z.string(),
  endpoint: z.string(),
  /** All files are there and were verified. */
  complete: z.boolean(),
  files: z.record(
    z.string(),
    z.object({ bytes: z.number(), sha256: z.string().optional(), git: z.string().optional() }),
  ),
})

export type PullRecord = z.infer<typeof recordSchema>

/**
 * The folder's record; undefined where the folder is new or empty.
 * @throws GraspError HUB_FAILED when the folder holds other files, or those of another repository.
 */
export async function readRecord(folder: string, repository: string): Promise<PullRecord | undefined> {
  const path = join(folder, RECORD_FILE)
  let record: PullRecord
  try {
    record = recordSchema.parse(JSON.parse(await readFile(path, 'utf8')))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOTDIR') throw failed(`${folder} is a file, or below one; give a new or an empty folder`)
    if (code !== 'ENOENT') {
      const why =
        error instanceof z.ZodError ? z.prettifyError(error).replace(/\s+/g, ' ') : describeError(error)
      throw failed(`${path} cannot be read: ${why}. Remove it, or give another folder.`, error)
    }
    const [other] = await entriesOf(folder)
    if (other === undefined) return undefined
    throw failed(`${folder} holds other files (${other}); give a new or an empty folder`)
  }
  if (record.repository === repository) return record
  throw failed(`${folder} holds files of ${record.repository}; give another folder for ${repository}`)
}

/**
 * The record of a pull into a folder that may have files of an earlier one. Of the same commit they stay beside the
 * new; of another they have to be among what is fetched now, or the folder would mix two versions of a model.
 * @throws GraspError HUB_FAILED naming a file that is in the way.
 */
export function joinRecords(folder: string, before: PullRecord | undefined, now: PullRecord): PullRecord {
  if (before === undefined) return now
  if (before.commit === now.commit) {
    return before.complete ? { ...now, files: { ...before.files, ...now.files } } : now
  }
  const left = Object.keys(before.files).find(name => !Object.hasOwn(now.files, name))
  if (left === undefined) return now
  throw failed(
    `${folder} holds ${left} of commit ${before.commit}, which is not among the files to fetch of commit ` +
      `${now.commit}. Give another folder for this version, or --revision ${before.commit}.`,
  )
}

async function entriesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw failed(`${folder} cannot be used: ${describeError(error)}`, error)
  }
}

/** Durable when it returns. */
export async function writeRecord(folder: string, record: PullRecord): Promise<void> {
  const path = join(folder, RECORD_FILE)
  const file = await open(`${path}.part`, 'w')
  try {
    await file.writeFile(`${JSON.stringify(record, null, 2)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}.part`, path)
}

function failed(message: string, cause?: unknown): GraspError {
  return new GraspError('HUB_FAILED', message, cause === undefined ? undefined : { cause })
}

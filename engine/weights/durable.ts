/** Files and folders that appear whole, and are on the disk when the call returns where that is wanted. */
import { access, lstat, open, readdir, rename, rm, rmdir, unlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import { makeFolder } from '../../errors/make-folder.ts'

/** Stands in a new folder as long as it is filled, so that what a killed process left can be told from anything else. */
const UNFINISHED = '.unfinished'

export async function writeDurably(path: string, content: Uint8Array | string): Promise<void> {
  const file = await open(path, 'w')
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Makes a folder's entries (new or renamed files) durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/**
 * Fills a folder aside (`PATH.writing`) and renames it into place: `path` is what it was before, or complete. A former
 * folder is moved aside first (`PATH.replaced`); `recoverFolder` puts it back if the process dies between the two renames.
 * @param mark the file that a folder must hold to be replaced. Any other that is not empty is somebody's, and
 * is refused. Without a mark nothing is replaced, and so nothing else beside `path` is touched.
 * @param durable whether the replacement is on the disk when this returns; what `fill` writes is for it to flush.
 */
export async function replaceFolder(
  path: string,
  mark: string | undefined,
  fill: (folder: string) => Promise<void>,
  { durable = true }: { readonly durable?: boolean } = {},
): Promise<void> {
  const aside = asideName(path)
  const isNew = mark === undefined
  if (!isNew) await recoverFolder(path)
  await checkReplaceable(path, mark)
  if (isNew) await checkOwn(aside)
  await rm(aside, { recursive: true, force: true })
  makeFolder(aside)
  try {
    if (isNew) await writeFile(join(aside, UNFINISHED), '')
    await fill(aside)
    if (durable) await syncFolder(aside)
    await (isNew ? putInto : putInPlaceOf)(path, aside, durable)
  } catch (error) {
    await rm(aside, { recursive: true, force: true })
    throw error
  }
}

/** What a caller says who was to write it. */
export function notWritten(what: string, cause: unknown): GraspError {
  const message = `${what} cannot be written: ${describeError(cause)}. Check the path, its permissions and the free space.`
  return new GraspError('ENGINE_FAILED', message, { cause })
}

/** Whether it is what an earlier try left. Errors: where it may be somebody else's. */
async function checkOwn(aside: string): Promise<void> {
  if (!(await exists(aside))) return
  const entries = await readdir(aside)
  if (entries.length === 0 || entries.includes(UNFINISHED)) return
  throw new Error(`${aside} is in the way; move it, or name another folder`)
}

/** `path` is empty or not there. */
async function putInto(path: string, aside: string, durable: boolean): Promise<void> {
  const there = await lstat(path).catch(() => undefined)
  if (there?.isSymbolicLink()) await unlink(path)
  else if (there) await rmdir(path)
  await rm(join(aside, UNFINISHED))
  await move(aside, path, durable)
}

async function putInPlaceOf(path: string, aside: string, durable: boolean): Promise<void> {
  const replaced = replacedName(path)
  try {
    if (await exists(path)) await rename(path, replaced)
    await move(aside, path, durable)
  } catch (error) {
    await recoverFolder(path)
    throw error
  }
  await rm(replaced, { recursive: true, force: true })
}

async function move(aside: string, path: string, durable: boolean): Promise<void> {
  await rename(aside, path)
  if (durable) await syncFolder(dirname(path))
}

async function checkReplaceable(path: string, mark: string | undefined): Promise<void> {
  if (!(await exists(path))) return
  const entries = await readdir(path)
  if (entries.length === 0 || (mark !== undefined && entries.includes(mark))) return
  const expected =
    mark === undefined ? 'an empty or a new folder' : `an empty or a new folder, or one with ${mark}`
  throw new Error(`the folder holds other files (${entries[0]}); expected ${expected}`)
}

/** After a death in the middle of a replacement: puts the former folder back, or removes it when it is obsolete. */
export async function recoverFolder(path: string): Promise<void> {
  const replaced = replacedName(path)
  if (!(await exists(replaced))) return
  if (await exists(path)) await rm(replaced, { recursive: true, force: true })
  else await rename(replaced, path)
}

/** Puts right what a death in the middle of a replacement left beside a folder. */
export async function clearRemainders(path: string): Promise<void> {
  await recoverFolder(path)
  await rm(asideName(path), { recursive: true, force: true })
}

function asideName(path: string): string {
  return `${path}.writing`
}

function replacedName(path: string): string {
  return `${path}.replaced`
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch {
    return false
  }
}

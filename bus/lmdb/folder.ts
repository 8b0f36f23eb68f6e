/**
 * Looks at the log's folder before LMDB does: its native code reports little of what is wrong, and does not
 * survive a file that is no database.
 */
import { accessSync, closeSync, constants, existsSync, openSync, readSync, statSync } from 'node:fs'
import { endianness } from 'node:os'
import { join } from 'node:path'
import { GraspError } from '../../errors/grasp-error.ts'
import { makeFolder } from '../../errors/make-folder.ts'
import { logFault } from './faults.ts'

/** Stands near the start of both meta pages of a database (`MDB_MAGIC`), in the machine's byte order. */
const MAGIC = Buffer.from(endianness() === 'LE' ? 'dec0efbe' : 'beefc0de', 'hex')
const MAGIC_WITHIN = 64
/** The smallest page, twice: a database starts with two meta pages. */
const SMALLEST = 2 * 256

/** Makes the folder unless `readOnly`. Errors: LOG_UNAVAILABLE saying what is wrong and what to do. */
export function prepareFolder(path: string, readOnly: boolean): void {
  const data = join(path, 'data.mdb')
  try {
    if (existsSync(path) && !statSync(path).isDirectory()) {
      throw new GraspError('LOG_UNAVAILABLE', `the log's path ${path} is a file; set log.path to a folder`)
    }
    if (readOnly && !existsSync(data)) {
      throw new GraspError('LOG_UNAVAILABLE', `there is no log in ${path}; check log.path and the run's name`)
    }
    if (!readOnly) makeFolder(path)
    checkAccess(path, readOnly)
    if (existsSync(data) && !isDatabase(data)) {
      throw new GraspError(
        'LOG_UNAVAILABLE',
        `${data} is damaged or was not written by this program; restore it, or set log.path to another folder`,
      )
    }
  } catch (cause) {
    throw logFault(path, 'open', cause)
  }
}

function checkAccess(path: string, readOnly: boolean): void {
  // LMDB keeps its reader table in lock.mdb, so that even reading needs permission to write there.
  const lock = join(path, 'lock.mdb')
  const writable = readOnly && existsSync(lock) ? [lock] : [path, lock]
  if (!readOnly) writable.push(join(path, 'data.mdb'))
  for (const name of writable) if (existsSync(name)) accessSync(name, constants.R_OK | constants.W_OK)
  accessSync(path, constants.R_OK | constants.X_OK)
  if (readOnly) accessSync(join(path, 'data.mdb'), constants.R_OK)
}

/** An empty file counts: LMDB starts a new database in it. */
function isDatabase(data: string): boolean {
  const { size } = statSync(data)
  if (size === 0) return true
  if (size < SMALLEST) return false
  const start = Buffer.alloc(MAGIC_WITHIN)
  const file = openSync(data, 'r')
  try {
    readSync(file, start, 0, start.length, 0)
  } finally {
    closeSync(file)
  }
  return start.includes(MAGIC)
}

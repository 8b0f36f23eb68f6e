/** What LMDB and the file system report, as errors that say what to do. */
import { describeError, GraspError } from '../../errors/grasp-error.ts'

const MDB_CORRUPTED = -30796
const MDB_PANIC = -30795
const MDB_VERSION_MISMATCH = -30794
const MDB_INVALID = -30793
const MDB_READERS_FULL = -30790

/** A GraspError of anything thrown while `doing` something with the log in `path`. */
export function logFault(path: string, doing: string, cause: unknown): GraspError {
  if (cause instanceof GraspError) return cause
  return new GraspError('LOG_UNAVAILABLE', `cannot ${doing} the log in ${path}: ${advice(cause)}`, { cause })
}

function advice(cause: unknown): string {
  const code = (cause as { code?: unknown } | null | undefined)?.code
  switch (code) {
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 1:
    case 13:
    case 30:
      return 'no permission to write there; make the folder writable or set log.path to another one'
    case 'ENOSPC':
    case 'EDQUOT':
    case 28:
    case 122:
      return 'the disk is full; free some space and run again, nothing that was committed is lost'
    // LMDB reports a write that the disk took only a part of as an I/O error.
    case 'EIO':
    case 5:
      return 'the disk is full or failing; free some space and run again, nothing that was committed is lost'
    case 'EFBIG':
    case 27:
      return 'the file may not grow any further; raise the file size limit and run again, nothing that was committed is lost'
    case 'ENOENT':
      return 'the folder is gone, or cannot be made there; set log.path to another one'
    case 'ENOTDIR':
    case 'EEXIST':
    case 20:
      return 'a part of this path is a file; set log.path to a folder'
    case MDB_INVALID:
    case MDB_CORRUPTED:
    case MDB_VERSION_MISMATCH:
      return 'data.mdb is damaged or was not written by this program; restore it, or set log.path to another folder'
    case MDB_READERS_FULL:
      return 'too many processes read it at once; close some'
    case MDB_PANIC:
      return 'an earlier write failed half-way; restart the program, nothing that was committed is lost'
    default:
      return describeError(cause)
  }
}

/**
 * lmdb-js rejects a failed transaction with an error that holds a promise of the real one. Waits for it, so
 * that it is neither lost nor reported as an unhandled rejection.
 */
export async function realCause(error: unknown): Promise<unknown> {
  const inner = (error as { commitError?: unknown } | null | undefined)?.commitError
  if (!(inner instanceof Promise)) return error
  return inner.then(
    () => error,
    cause => cause ?? error,
  )
}

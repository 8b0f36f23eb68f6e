/** An error as a person reads it: a code, what is wrong, and what to do where the message does not say it. */
import { GraspError } from '../errors/grasp-error.ts'

export interface Explanation {
  readonly code: string
  readonly message: string
  readonly hint?: string
}

const HINTS: Partial<Record<string, string>> = {
  ENOSPC: 'the disk is full; free some space and run the same command again: what is in the log is not lost',
  EACCES: 'this user may not read or write there; change the permissions or name another path',
  EROFS: 'that file system is read-only; name another folder with --set log.path=DIR --set output.path=DIR',
  ERR_MODULE_NOT_FOUND: 'the installation is incomplete; run `npm ci` where grasp is installed',
  EMFILE: 'too many files are open; raise the limit with `ulimit -n`',
}

export function explain(error: unknown): Explanation {
  if (error instanceof GraspError) return { code: error.code, message: error.message }
  if (!(error instanceof Error)) return { code: 'UNEXPECTED', message: String(error) }
  const code = (error as NodeJS.ErrnoException).code
  const hint = code === undefined ? undefined : HINTS[code]
  if (code !== undefined && hint !== undefined) return { code, message: error.message, hint }
  return {
    code: code ?? 'UNEXPECTED',
    message: error.message,
    hint: 'this should not happen; run the command with --log-level debug and report what it prints',
  }
}

/** `error CODE: message`, then the hint, then (for debugging) the stacks of the error and its causes. */
export function renderError(error: unknown, withStack: boolean): string {
  const { code, message, hint } = explain(error)
  const lines = [`error ${code}: ${message}`]
  if (hint) lines.push(`  hint: ${hint}`)
  if (withStack) {
    for (let cause: unknown = error; cause instanceof Error; cause = cause.cause)
      lines.push(cause.stack ?? '')
  }
  return `${lines.join('\n')}\n`
}

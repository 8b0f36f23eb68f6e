import { GraspError } from '../errors/grasp-error.ts'

/** What the process tells its caller; `grasp --help` lists them. */
export const EXIT = { ok: 0, failure: 1, usage: 2, interrupted: 130 } as const

export function exitCode(error: unknown): number {
  if (!(error instanceof GraspError)) return EXIT.failure
  if (error.code === 'CONFIG_INVALID') return EXIT.usage
  if (error.code === 'INTERRUPTED') return EXIT.interrupted
  return EXIT.failure
}

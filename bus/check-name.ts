import { GraspError } from '../errors/grasp-error.ts'

/** Names of groups and notes are parts of keys, whose length every log limits. Errors: CONFIG_INVALID. */
export function checkName(what: string, name: string): void {
  if (name.length > 0 && name.length <= 200 && !name.includes('\0')) return
  const message = `${what}: expected a name of 1 to 200 characters, got ${JSON.stringify(name.slice(0, 50))}`
  throw new GraspError('CONFIG_INVALID', message)
}

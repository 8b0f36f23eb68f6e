import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/**
 * When a process began, in the system's own words: the same for the life of the process, and another for any
 * later process with its id. Undefined where there is no such process (any more); empty where it runs but the
 * system does not say since when.
 */
export function processStart(id: number): string | undefined {
  if (process.platform === 'linux') return linuxStart(id)
  try {
    process.kill(id, 0)
  } catch (error) {
    // Without permission to signal it, it exists.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return undefined
  }
  if (process.platform === 'win32') return ''
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(id)], { encoding: 'utf8' }).trim()
  } catch {
    return ''
  }
}

/** Clock ticks after this boot of the machine. */
function linuxStart(id: number): string | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/${id}/stat`, 'utf8')
  } catch {
    return undefined
  }
  // The name, in parentheses, may hold anything; after it come the state (field 3) and so on.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state] = fields
  // Killed, and only waiting for its parent to notice.
  if (state === 'Z' || state === 'X') return undefined
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return `${boot} ${fields[19]}`
}

/** The engine's processes that a process has, on Linux. */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export const canFindEngines = process.platform === 'linux'

/** Their ids. At once, so that what is sent to them reaches them before the caller does anything else. */
export function enginesOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter(entry => /^\d+$/.test(entry))
    .filter(id => parentOf(id) === parent && read(`/proc/${id}/cmdline`).includes('engine/process/host'))
    .map(Number)
}

/** Waits for a process to end; the test's timeout is the limit. */
export async function gone(id: number): Promise<void> {
  // A zombie has ended; only its parent has not asked.
  while (!['', 'Z'].includes(stateOf(id))) await sleep(20)
}

function parentOf(id: string): number {
  return Number(fields(id)[1])
}

function stateOf(id: number): string {
  return fields(String(id))[0] ?? ''
}

/** Those of /proc/ID/stat behind the program's name, which may hold anything. */
function fields(id: string): string[] {
  const stat = read(`/proc/${id}/stat`)
  return stat === '' ? [] : stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** Nothing of a process that is gone. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

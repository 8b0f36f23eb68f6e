/** Memory of this machine that a new process may take, in bytes: within the limit of its container where it has one. */
import { readFileSync } from 'node:fs'
import { freemem, totalmem } from 'node:os'
import { join } from 'node:path'

export interface MachineMemory {
  readonly free: number
  readonly total: number
  /** The total is a container's limit, not the machine's memory. */
  readonly limited: boolean
}

export function machineMemory(): MachineMemory {
  // 0, or more than there is, where nothing is limited.
  const limit = process.constrainedMemory()
  const limited = limit > 0 && limit < totalmem()
  if (!limited) return { free: freemem(), total: totalmem(), limited }
  // Files that were read count against a container's limit, but give way to whoever needs memory.
  const free = Math.min(freemem(), limit, process.availableMemory() + cachedFiles())
  return { free, total: limit, limited }
}

/** Bytes of files that the system keeps in the memory of this process's control group; 0 where it is not told. */
function cachedFiles(): number {
  for (const path of statisticsPaths(readText('/proc/self/cgroup') ?? '')) {
    const text = readText(path)
    if (text !== undefined) return readCachedFiles(text)
  }
  return 0
}

/**
 * Where a control group's memory.stat may be: below its path, or at the root, as a container sees it.
 * @param groups text of /proc/self/cgroup, with lines of version 1 (`4:memory:/PATH`) and version 2 (`0::/PATH`)
 */
export function statisticsPaths(groups: string): string[] {
  const version1 = /^\d+:(?:\S+,)?memory(?:,\S+)?:(.*)$/m.exec(groups)?.[1]
  const version2 = /^0::(.*)$/m.exec(groups)?.[1]
  const of = (root: string, path: string | undefined) =>
    path === undefined ? [] : [join(root, path, 'memory.stat'), join(root, 'memory.stat')]
  return [...new Set([...of('/sys/fs/cgroup/memory', version1), ...of('/sys/fs/cgroup', version2)])]
}

/** Of a memory.stat of either version. */
export function readCachedFiles(text: string): number {
  const bytes = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
  return bytes('inactive_file') + bytes('active_file')
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined // no such file: no Linux, or no such control group
  }
}

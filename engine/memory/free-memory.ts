/** Memory of this machine that a new process may take, in bytes: within the limit of its container where it has one. */
import { freemem, totalmem } from 'node:os'

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
  return {
    free: limited ? Math.min(freemem(), process.availableMemory()) : freemem(),
    total: limited ? limit : totalmem(),
    limited,
  }
}

/** Counts how often files and folders are flushed to the disk in this process, through node:fs/promises. */
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import type { TestContext } from 'node:test'

/** @returns how often since the call; flushing goes on as it does. */
export async function countSyncs(t: TestContext): Promise<() => number> {
  const handle = await open(tmpdir(), 'r')
  const sync = t.mock.method(Object.getPrototypeOf(handle), 'sync')
  await handle.close()
  return () => sync.mock.callCount()
}

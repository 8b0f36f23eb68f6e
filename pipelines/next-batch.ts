import type { Log } from '../bus/port.ts'
import { keyedBatch } from '../operators/batch-key.ts'

/** The number of the first batch that is not in `instances`: a batch is committed whole, so its records tell. */
export async function nextBatch(log: Log): Promise<number> {
  let next = 0
  for await (const { value, key } of log.scan('instances')) {
    // What cannot be decoded has its number too, or the next batch would get the same one.
    const batch = value?.batch ?? keyedBatch(key)
    if (batch !== undefined) next = Math.max(next, batch.number + 1)
  }
  return next
}

import type { Log } from '../bus/port.ts'

/** The number of the first batch that is not in `instances`: a batch is committed whole, so its records tell. */
export async function nextBatch(log: Log): Promise<number> {
  let next = 0
  for await (const { value } of log.scan('instances')) next = Math.max(next, (value?.batch.number ?? -1) + 1)
  return next
}

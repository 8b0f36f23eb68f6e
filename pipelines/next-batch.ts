import type { Log } from '../bus/port.ts'

/** The number of the first batch that is not in `rollouts`: a batch is committed whole, so the last record tells. */
export async function nextBatch(log: Log): Promise<number> {
  const info = (await log.topics()).find(({ topic }) => topic === 'rollouts')
  let next = 0
  for (const [partition, end] of (info?.ends ?? []).entries()) {
    // Undecodable records say nothing of their batch; the nearest one before them does.
    for (let offset = end - 1; offset >= 0; offset--) {
      let batch: number | undefined
      for await (const record of log.scan('rollouts', { partition, from: { offset }, limit: 1 })) {
        batch = record.value?.batch.number
      }
      if (batch === undefined) continue
      next = Math.max(next, batch + 1)
      break
    }
  }
  return next
}

/** Which batches are done with: an update has been made of them. */
import type { Delivery, Log } from '../../bus/port.ts'
import { recordsFrom } from './records.ts'

/** The number of the first batch that has not been trained on. */
export async function firstOpenBatch(log: Log): Promise<number> {
  let next = 0
  for await (const record of recordsFrom(log, { topic: 'updates' })) {
    const { value } = record as Delivery<'updates'>
    if (value !== undefined) next = Math.max(next, value.batch + 1)
  }
  return next
}

/**
 * Of the records of a partition from `start` to `stop` (exclusive): how many belong to batches that have been
 * trained on, and the offset after the last of these.
 */
export async function firstOpenOffset(
  log: Log,
  topic: 'instances' | 'rollouts',
  partition: number,
  start: number,
  stop: number,
): Promise<{ readonly trained: number; readonly offset: number }> {
  const open = await firstOpenBatch(log)
  let [trained, next] = [0, start]
  for await (const { offset, value } of recordsFrom(log, { topic, partition }, { offset: start })) {
    if (offset >= stop) break
    const number = (value as { readonly batch?: { readonly number: number } } | undefined)?.batch?.number
    if (number === undefined || number >= open) continue
    trained += 1
    next = offset + 1
  }
  return { trained, offset: next }
}

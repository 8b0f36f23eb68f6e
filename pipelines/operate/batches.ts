/** Where batches of the trainer begin in a topic, and which of them are done with: an update was made of them. */
import type { Delivery, Log } from '../../bus/port.ts'
import { keyedBatch } from '../../operators/batch-key.ts'
import { recordAt, recordsFrom } from './records.ts'

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
  for await (const { offset, key } of recordsFrom(log, { topic, partition }, { offset: start })) {
    if (offset >= stop) break
    const number = keyedBatch(key)?.number
    if (number === undefined || number >= open) continue
    trained += 1
    next = offset + 1
  }
  return { trained, offset: next }
}

/**
 * Where the batch begins that the record at `offset` belongs to. A batch stands in one partition, its records
 * side by side, and is processed whole: a stage that began in its middle would wait for the rest for ever.
 */
export async function batchStart(
  log: Log,
  topic: 'instances' | 'rollouts',
  partition: number,
  offset: number,
): Promise<number> {
  const at = await recordAt(log, topic, partition, { offset })
  const batch = at && keyedBatch(at.key)
  if (batch === undefined) return offset
  // Offsets may have gaps, so it is looked further back until something else stands before the batch.
  for (let back = batch.size; ; back *= 4) {
    const start = Math.max(0, at!.offset - back)
    let isWhole = start === 0
    let first: number | undefined
    for await (const record of recordsFrom(log, { topic, partition }, { offset: start })) {
      if (record.offset >= at!.offset) break
      if (record.key === at!.key) first ??= record.offset
      else [isWhole, first] = [true, undefined]
    }
    if (isWhole) return first ?? offset
  }
}

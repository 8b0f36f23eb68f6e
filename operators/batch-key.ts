/** The key of a batch's records: equal keys share a partition, so one worker gets all of the batch. */

export interface KeyedBatch {
  readonly number: number
  readonly size: number
}

export function batchKey({ number, size }: KeyedBatch): string {
  return `batch ${number} of ${size}`
}

/**
 * The batch that a record belongs to, by its key: so one that cannot be decoded is known to be missing there, also
 * where nothing else of its batch can be. Undefined for any other key.
 */
export function keyedBatch(key: string): KeyedBatch | undefined {
  const [, number, size] = /^batch (\d+) of (\d+)$/.exec(key) ?? []
  return number === undefined ? undefined : { number: Number(number), size: Number(size) }
}

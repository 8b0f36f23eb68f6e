import { type GraspError, isPerRecord } from '../errors/grasp-error.ts'

export interface Attempted<T, R> {
  /** In the order of the items. */
  readonly done: readonly { readonly item: T; readonly result: R }[]
  readonly failed: readonly { readonly item: T; readonly error: GraspError }[]
}

/**
 * Does something for every item side by side. Errors that condemn one item are set aside, so that the rest of
 * its group goes on; any other error is thrown.
 */
export async function partitionFailures<T, R>(
  items: readonly T[],
  attempt: (item: T) => Promise<R>,
): Promise<Attempted<T, R>> {
  const done: { item: T; result: R }[] = []
  const failed: { item: T; error: GraspError }[] = []
  const outcomes = await Promise.allSettled(items.map(attempt))
  outcomes.forEach((outcome, i) => {
    const item = items[i]!
    if (outcome.status === 'fulfilled') done.push({ item, result: outcome.value })
    else if (isPerRecord(outcome.reason)) failed.push({ item, error: outcome.reason })
    else throw outcome.reason
  })
  return { done, failed }
}

/** What a call to the learner is made of, checked and derived, before anything runs. */
import { GraspError } from '../../errors/grasp-error.ts'
import type { ModelConfig } from '../architectures/config.ts'
import { checkIds } from '../check-ids.ts'
import type { LossKind } from '../losses/loss-kind.ts'
import type { TrainItem } from '../port.ts'
import { lossKindOf, type Target, targetOf } from './target.ts'

/** Rows `from` to `from + count − 1` of a sequence are wanted. */
export interface Sequence {
  readonly ids: Int32Array
  readonly from: number
  readonly count: number
}

/** A training item with what is derived of it; `index` is its place in the call. */
export interface Work extends Sequence {
  readonly index: number
  readonly kind: LossKind
  readonly target: Target
  /** Only targets of equal widths share a pass. */
  readonly widths: string
}

/** @throws GraspError SLICE_MISMATCH, RECORD_INVALID, PROMPT_TOO_LONG */
export function workOf(config: ModelConfig, index: number, item: TrainItem): Work {
  const target = targetOf(item, config)
  const sequence = responseSequence(item.prompt, item.response)
  checkLength(config, sequence.ids)
  const widths = Object.values(target)
    .map(({ width }) => width)
    .join()
  return { index, ...sequence, kind: lossKindOf(item), target, widths }
}

/** The rows that predict a response's tokens. Its last token is predicted but predicts nothing: it is no input. */
export function responseSequence(prompt: Int32Array, response: Int32Array): Sequence {
  const read = response.subarray(0, Math.max(0, response.length - 1))
  const ids = new Int32Array(prompt.length + read.length)
  ids.set(prompt)
  ids.set(read, prompt.length)
  return { ids, from: prompt.length - 1, count: response.length }
}

/**
 * How many tokens of each sequence it takes to have the rows that are wanted; 0 where none are.
 * @throws GraspError PROMPT_TOO_LONG, RECORD_INVALID
 */
export function lengthsOf(config: ModelConfig, sequences: readonly Sequence[]): number[] {
  return sequences.map(({ ids, from, count }) => {
    checkIds('a sequence', ids, config.vocabularySize)
    checkLength(config, ids)
    if (from < 0 || from + count > ids.length) {
      const message = `rows ${from} to ${from + count} were asked of a sequence of ${ids.length} tokens`
      throw new GraspError('RECORD_INVALID', message)
    }
    return count === 0 ? 0 : Math.min(ids.length, from + count)
  })
}

function checkLength({ contextLength }: ModelConfig, ids: Int32Array): void {
  if (ids.length <= contextLength) return
  const message = `a sequence has ${ids.length} tokens; the model's context is ${contextLength}`
  throw new GraspError('PROMPT_TOO_LONG', message)
}

/** Groups in the order of their first member. */
export function groupBy<T>(values: readonly T[], keyOf: (value: T) => string): T[][] {
  const groups = new Map<string, T[]>()
  for (const value of values) {
    const key = keyOf(value)
    const group = groups.get(key)
    if (group) group.push(value)
    else groups.set(key, [value])
  }
  return [...groups.values()]
}

/** Rows [count, D] of each range, cut from where they stand one after the other, put at its number among the results. */
export function putRows(
  rows: Float32Array,
  members: readonly number[],
  sequences: readonly Sequence[],
  width: number,
  results: Float32Array[],
): void {
  let offset = 0
  for (const index of members) {
    const { count } = sequences[index]!
    results[index] = rows.slice(offset * width, (offset + count) * width)
    offset += count
  }
}

/** [N]: what each token's loss counts in the sum over responses of the mean over their tokens. */
export function ratesOf(works: readonly Work[]): Float32Array {
  return Float32Array.from(works.flatMap(({ count }) => new Array<number>(count).fill(1 / count)))
}

/** Means of the tokens' losses [N], put at each item's place. */
export function putMeans(tokens: Float32Array, works: readonly Work[], losses: Float64Array): void {
  let offset = 0
  for (const { index, count } of works) {
    let sum = 0
    for (let token = 0; token < count; token++) sum += tokens[offset++]!
    losses[index] = sum / count
  }
}

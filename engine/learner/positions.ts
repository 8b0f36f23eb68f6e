/**
 * What the layers need to know of positions, as values of their graph and as tensors for a pass of length T.
 *
 * The last layer's output is wanted of the rows from some position on alone: its tail. There are queries of these R rows
 * only, and keys and values of all T.
 *
 * Queries are cut into blocks of rows of like size, each of which sees the keys up to its own end: with 4 of
 * them 5/8 of the T × T scores are computed. In layers with a sliding window a block sees the keys from where the
 * window of its first row begins. Rows are padded on the right, so causality alone keeps real tokens from seeing
 * padding.
 */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import { firstPositions, rotaryTables } from '../architectures/rotary-tables.ts'
import { input } from '../graph/input.ts'
import type { AttentionBlock } from '../graph/operations/attention.ts'
import type { Range } from '../graph/operations/slice.ts'
import type { Value } from '../graph/value.ts'
import type { Feeds } from '../runtime/session.ts'

/** Positions of a pass of B rows of T tokens, padded on the right. */
export interface Positions {
  /** [T, headDim / 2] */
  readonly cos: Value
  readonly sin: Value
  /** Which keys each query looks at. */
  readonly blocks: readonly AttentionBlock[]
  /** The rows that have queries, where these are not all. */
  readonly tail?: Range
}

/** The rows of a sequence that a layer's output is wanted of. */
export type Extent = 'all' | 'tail'

/** Layers that look at everything before a token, or at a window. */
export type Reach = 'full' | 'window'

const BLOCKS = 4

/** Passes are padded to this length: onnxruntime leaves the product of empty matrices unwritten. */
export const LEAST_LENGTH = BLOCKS

/** Low enough that the exponential of any score with it is 0. */
export const MASKED = -1e30

/** Which reaches a model's layers have. */
export function reachesOf({ slidingWindow }: ModelConfig): readonly Reach[] {
  if (!slidingWindow) return ['full']
  return slidingWindow.layers.includes(false) ? ['full', 'window'] : ['window']
}

/** Block b has rows `ends[b]` to `ends[b + 1]`: at least one where there are `LEAST_LENGTH` rows. */
function endsOf(length: number, from: number): number[] {
  return Array.from(
    { length: BLOCKS + 1 },
    (_, block) => from + Math.ceil(((length - from) * block) / BLOCKS),
  )
}

/** The first key that the block whose rows begin at `row` looks at. */
function startOf(row: number, window: number): number {
  return Math.max(0, row - window + 1)
}

/**
 * Inputs `cos`, `sin` [T, headDim/2], `end.B` [1] int64 and, for each block, `mask.B` [rows, keys]; with a window
 * `window.start.B` [1] int64 and `window.mask.B` instead of the latter; for a tail `from` and `row.B` [1] int64.
 */
export function positionValues({ headDim }: ModelConfig, reach: Reach, extent: Extent = 'all'): Positions {
  const integers = (name: string) =>
    Array.from({ length: BLOCKS }, (_, block) => input(`${name}.${block}`, [1], 'int64'))
  const ends = integers('end')
  const of = ends.at(-1)!
  const rows = extent === 'all' ? ends : integers('row')
  const blocks = ends.map((to, block): AttentionBlock => {
    const queries: Range = {
      ...(block > 0 && { from: rows[block - 1]! }),
      to: rows[block]!,
      of: rows.at(-1)!,
      length: `rows.${block}`,
    }
    if (reach === 'window') {
      const length = `window.keys.${block}`
      const keys: Range = { from: input(`window.start.${block}`, [1], 'int64'), to, of, length }
      return { queries, keys, mask: input(`window.mask.${block}`, [queries.length, length]) }
    }
    const keys: Range = { to, of, length: block === BLOCKS - 1 ? 'T' : `keys.${block}` }
    return { queries, keys, mask: input(`mask.${block}`, [queries.length, keys.length]) }
  })
  const tail = extent === 'tail' && { tail: { from: input('from', [1], 'int64'), to: of, of, length: 'R' } }
  return { cos: input('cos', ['T', headDim / 2]), sin: input('sin', ['T', headDim / 2]), blocks, ...tail }
}

/** The symbolic lengths of those shapes. @param from where the tail begins */
export function positionLengths(
  config: ModelConfig,
  length: number,
  from = 0,
): Readonly<Record<string, number>> {
  const ends = endsOf(length, from)
  const lengths: Record<string, number> = { T: length, R: length - from }
  for (let block = 0; block < BLOCKS; block++) {
    const [start, end] = [ends[block]!, ends[block + 1]!]
    lengths[`keys.${block}`] = end
    lengths[`rows.${block}`] = end - start
    if (config.slidingWindow)
      lengths[`window.keys.${block}`] = end - startOf(start, config.slidingWindow.tokens)
  }
  return lengths
}

/**
 * Tensors for the inputs of every reach that the model has, by length and the tail's beginning, of which there are at
 * least `LEAST_LENGTH` rows. The latest are remembered.
 */
export function positionFeeds(config: ModelConfig): (length: number, from?: number) => Feeds {
  const tables = rotaryTables(config)
  let known = ''
  let feeds: Feeds = {}
  return (length, from = 0) => {
    const key = `${length} ${from}`
    if (key !== known) {
      feeds = { ...firstPositions(tables, length), ...blockFeeds(endsOf(length, from), config) }
      known = key
    }
    return feeds
  }
}

function blockFeeds(ends: readonly number[], config: ModelConfig): Feeds {
  const feeds: Record<string, Tensor> = { from: int64(ends[0]!) }
  const reaches = reachesOf(config)
  for (let block = 0; block < BLOCKS; block++) {
    const [start, end] = [ends[block]!, ends[block + 1]!]
    feeds[`end.${block}`] = int64(end)
    feeds[`row.${block}`] = int64(end - ends[0]!)
    if (reaches.includes('full')) feeds[`mask.${block}`] = blockMask(start, end, 0, Number.POSITIVE_INFINITY)
    if (reaches.includes('window')) {
      const { tokens } = config.slidingWindow!
      const from = startOf(start, tokens)
      feeds[`window.start.${block}`] = int64(from)
      feeds[`window.mask.${block}`] = blockMask(start, end, from, tokens)
    }
  }
  return feeds
}

function int64(value: number): Tensor {
  return new Tensor('int64', BigInt64Array.of(BigInt(value)), [1])
}

/** Rows `start` to `end`, keys `from` to `end`: each row looks at itself and at `window − 1` keys before it. */
function blockMask(start: number, end: number, from: number, window: number): Tensor {
  const keys = end - from
  const mask = new Float32Array((end - start) * keys)
  for (let row = start; row < end; row++) {
    const at = (row - start) * keys - from
    mask.fill(MASKED, at + from, at + Math.max(from, row - window + 1))
    mask.fill(MASKED, at + row + 1, at + end)
  }
  return new Tensor('float32', mask, [end - start, keys])
}

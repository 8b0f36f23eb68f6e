/**
 * What the layers need to know of positions, as values of their graph and as tensors for a pass of length T.
 *
 * Queries are cut into blocks of rows of like size, each of which sees the keys up to its own end: with 4 of
 * them 5/8 of the T × T scores are computed. Rows are padded on the right, so causality alone keeps real
 * tokens from seeing padding.
 */
import { Tensor } from 'onnxruntime-node'
import type { Positions } from '../architectures/architecture.ts'
import type { ModelConfig } from '../architectures/config.ts'
import { rotaryTables } from '../architectures/rotary-tables.ts'
import { input } from '../graph/input.ts'
import type { Range } from '../graph/operations/slice.ts'
import type { Feeds } from '../runtime/session.ts'

const BLOCKS = 4

/** Passes are padded to this length: onnxruntime leaves the product of empty matrices unwritten. */
export const LEAST_LENGTH = BLOCKS

/** Low enough that the exponential of any score with it is 0. */
const MASKED = -1e30

/** Block b has rows `ends[b]` to `ends[b + 1]`: at least one from `LEAST_LENGTH` on. */
function endsOf(length: number): number[] {
  return Array.from({ length: BLOCKS + 1 }, (_, block) => Math.ceil((length * block) / BLOCKS))
}

/** Inputs `cos`, `sin` [T, headDim/2], `end.B` [1] int64 and `mask.B` [rows, keys] of each block. */
export function positionValues({ headDim }: ModelConfig): Positions {
  const ends = Array.from({ length: BLOCKS }, (_, block) => input(`end.${block}`, [1], 'int64'))
  const blocks = ends.map((to, block) => {
    const of = ends.at(-1)!
    const keys: Range = { to, of, length: block === BLOCKS - 1 ? 'T' : `keys.${block}` }
    const queries: Range = { ...keys, ...(block > 0 && { from: ends[block - 1]! }), length: `rows.${block}` }
    return { queries, keys, mask: input(`mask.${block}`, [queries.length, keys.length]) }
  })
  return { cos: input('cos', ['T', headDim / 2]), sin: input('sin', ['T', headDim / 2]), blocks }
}

/** The symbolic lengths of those shapes. */
export function positionLengths(length: number): Readonly<Record<string, number>> {
  const ends = endsOf(length)
  const lengths: Record<string, number> = { T: length }
  for (let block = 0; block < BLOCKS; block++) {
    lengths[`keys.${block}`] = ends[block + 1]!
    lengths[`rows.${block}`] = ends[block + 1]! - ends[block]!
  }
  return lengths
}

/** Tensors for the inputs, by length. The latest length is remembered. */
export function positionFeeds(config: ModelConfig): (length: number) => Feeds {
  const tables = rotaryTables(config)
  const half = config.headDim / 2
  let known = 0
  let feeds: Feeds = {}
  return length => {
    if (length !== known) {
      const rows = ({ data }: Tensor) =>
        new Tensor('float32', (data as Float32Array).subarray(0, length * half), [length, half])
      feeds = { cos: rows(tables.cos), sin: rows(tables.sin), ...blockFeeds(endsOf(length)) }
      known = length
    }
    return feeds
  }
}

function blockFeeds(ends: readonly number[]): Feeds {
  const feeds: Record<string, Tensor> = {}
  for (let block = 0; block < BLOCKS; block++) {
    const [start, end] = [ends[block]!, ends[block + 1]!]
    const mask = new Float32Array((end - start) * end)
    for (let row = 0; row < end - start; row++)
      mask.fill(MASKED, row * end + start + row + 1, (row + 1) * end)
    feeds[`end.${block}`] = new Tensor('int64', BigInt64Array.of(BigInt(end)), [1])
    feeds[`mask.${block}`] = new Tensor('float32', mask, [end - start, end])
  }
  return feeds
}

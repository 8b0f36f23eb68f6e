/** Moves rows between padded batches [B, T, D], or their tails [B, T − start, D], and packed rows [N, D]. */
import { Tensor } from 'onnxruntime-node'

/** Rows `from` to `from + count − 1` of one row of the batch. */
export interface RowRange {
  readonly from: number
  readonly count: number
}

/** @param ranges one for each row of the batch that is no padding */
export function gatherRows(batch: Tensor, ranges: readonly RowRange[], tailStart = 0): Float32Array {
  const [, length, width] = batch.dims as [number, number, number]
  const source = batch.data as Float32Array
  const target = new Float32Array(ranges.reduce((sum, { count }) => sum + count, 0) * width)
  let offset = 0
  for (const [row, { from, count }] of ranges.entries()) {
    const start = (row * length + from - tailStart) * width
    target.set(source.subarray(start, start + count * width), offset)
    offset += count * width
  }
  return target
}

/** The reverse of `gatherRows`: a batch like `like`, 0 where no row goes. */
export function scatterRows(
  rows: Float32Array,
  ranges: readonly RowRange[],
  like: Tensor,
  tailStart = 0,
): Tensor {
  const [, length, width] = like.dims as [number, number, number]
  const target = new Float32Array(like.size)
  let offset = 0
  for (const [row, { from, count }] of ranges.entries()) {
    target.set(rows.subarray(offset, offset + count * width), (row * length + from - tailStart) * width)
    offset += count * width
  }
  return new Tensor('float32', target, like.dims)
}

/** Token embedding and its gradient: rows copied, and rows added. */
import { Tensor } from 'onnxruntime-node'

/**
 * @param table [V, D]
 * @param rows token ids
 * @param scale factor of the embeddings
 * @returns [B, T, D] of the batch's size; padding is 0
 */
export function embed(
  table: Tensor,
  rows: readonly Int32Array[],
  batch: { readonly rows: number; readonly length: number },
  scale = 1,
): Tensor {
  const { length } = batch
  const width = table.dims[1]!
  const source = table.data as Float32Array
  const target = new Float32Array(batch.rows * length * width)
  for (const [row, ids] of rows.entries()) {
    for (const [position, id] of ids.entries()) {
      target.set(source.subarray(id * width, (id + 1) * width), (row * length + position) * width)
    }
  }
  if (scale !== 1) for (let i = 0; i < target.length; i++) target[i]! *= scale
  return new Tensor('float32', target, [batch.rows, length, width])
}

/** Adds the gradient at `embed`'s result onto the gradient of the table, in the order of rows and positions. */
export function addEmbeddingGradient(
  sum: Float32Array,
  rows: readonly Int32Array[],
  gradient: Tensor,
  scale = 1,
): void {
  const [, length, width] = gradient.dims as [number, number, number]
  const source = gradient.data as Float32Array
  for (const [row, ids] of rows.entries()) {
    for (const [position, id] of ids.entries()) {
      const from = (row * length + position) * width
      const to = id * width
      for (let i = 0; i < width; i++) sum[to + i]! += scale * source[from + i]!
    }
  }
}

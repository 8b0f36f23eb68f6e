/**
 * Products of activations with the model's weights, which are part of the graph: onnxruntime lays them out once, as
 * its kernels read them. Shape suffixes are those of decode-graph.ts.
 */
import type { GraphBuilder, Value } from '../onnx/graph-builder.ts'
import { COM } from './activation.ts'
import { type QuantisedWeight, SCALED_TOGETHER } from './quantised-weight.ts'

/** Rows [N, in] times the transpose of a weight [width, in]: [N, width]. */
export type Products = (weight: string, rows: Value, width: number) => Value

/** @param shapes of the weights, which are to be given under their names when the graph is loaded. */
export function exactProducts(g: GraphBuilder, shapes: ReadonlyMap<string, readonly number[]>): Products {
  return (weight, rows) => {
    const matrix = g.external(`${weight}.matrix`, 'float32', shapes.get(weight)!, weight)
    return g.node('FusedMatMul', [rows, matrix], { transB: 1 }, COM)
  }
}

/** With weights of 8 bits; activations are rounded to 8 bits too. */
export function quantisedProducts(g: GraphBuilder, weights: ReadonlyMap<string, QuantisedWeight>): Products {
  const INT8 = 4
  return (weight, rows) => {
    const { dims, values, scales } = weights.get(weight)!
    const [N, K] = dims
    const blocks = scales.length / N
    const bytes = new Uint8Array(scales.buffer, scales.byteOffset, scales.byteLength)
    const inputs = [
      rows,
      g.initializer(`${weight}.quantised`, 'uint8', [N, blocks, SCALED_TOGETHER], values),
      g.initializer(`${weight}.scales`, 'float32', [N, blocks], bytes),
    ]
    const attributes = { K, N, bits: 8, block_size: SCALED_TOGETHER, accuracy_level: INT8 }
    return g.node('MatMulNBits', inputs, attributes, COM)
  }
}

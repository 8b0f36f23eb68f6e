/** Products of the model's weights with activations, in two ways. Shape suffixes are those of decode-graph.ts. */
import type { GraphBuilder, Value } from '../onnx/graph-builder.ts'
import { type Activation, COM, rowsOf } from './activation.ts'
import { type QuantisedWeight, SCALED_TOGETHER } from './quantised-weight.ts'

/** A weight [width, in] times activations of width `in`. */
export type Products = (weight: Value, x: Activation, width: number) => Activation

/** With the weight first, as [P, width, C]. @param parts names the input [2] with P and C. */
export function exactProducts(g: GraphBuilder, parts: Value): Products {
  const shapes = new Map<number, Value>()
  /** [P, C, width] */
  const shapeOf = (width: number) => {
    const shape = shapes.get(width) ?? g.node('Concat', [parts, g.ints([width])], { axis: 0 })
    shapes.set(width, shape)
    return shape
  }
  return (weight, x, width) => {
    if (x.layout === 'heads') throw new Error('attention alone takes heads')
    const value =
      x.layout === 'rows'
        ? g.node(
            'FusedMatMul',
            [weight, g.node('Reshape', [x.value, shapeOf(x.width)], { allowzero: 1 })],
            { transB: 1 },
            COM,
          )
        : g.node('MatMul', [weight, x.value])
    return { layout: 'columns', value, width }
  }
}

/** With weights of 8 bits, which become part of the graph; activations are rounded to 8 bits too. */
export function quantisedProducts(g: GraphBuilder, weights: ReadonlyMap<string, QuantisedWeight>): Products {
  const INT8 = 4
  return (weight, x, width) => {
    const { dims, values, scales } = weights.get(weight)!
    const [N, K] = dims
    const blocks = scales.length / N
    const bytes = new Uint8Array(scales.buffer, scales.byteOffset, scales.byteLength)
    const inputs = [
      rowsOf(g, x),
      g.initializer(`${weight}.quantised`, 'uint8', [N, blocks, SCALED_TOGETHER], values),
      g.initializer(`${weight}.scales`, 'float32', [N, blocks], bytes),
    ]
    const attributes = { K, N, bits: 8, block_size: SCALED_TOGETHER, accuracy_level: INT8 }
    return { layout: 'rows', value: g.node('MatMulNBits', inputs, attributes, COM), width }
  }
}

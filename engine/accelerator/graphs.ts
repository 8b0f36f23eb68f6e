/** Small graphs that move and sum what is on a device. */
import { type ElementType, elementTypeCode } from '../onnx/element-type.ts'
import type { GraphBuilder, Value } from '../onnx/graph-builder.ts'
import { LoweringBuilder } from './lowering-builder.ts'

function graph(name: string, rank: number, make: (g: GraphBuilder) => Value): Uint8Array {
  const g = new LoweringBuilder(name)
  const shape = Array.from({ length: rank }, (_, axis) => `Y${axis}`)
  g.output(make(g), 'float32', shape, 'y')
  return g.build()
}

const axes = (name: string, rank: number) => Array.from({ length: rank }, (_, axis) => `${name}${axis}`)
const tensor = (g: GraphBuilder, name: string, rank: number, type: ElementType = 'float32') =>
  g.input(name, type, axes(name, rank))

/** `shape` [rank] int64 to zeros `y` of that shape. */
export function zerosGraph(rank: number): Uint8Array {
  return graph('zeros', rank, g => g.node('Expand', [g.float([0]), g.input('shape', 'int64', [rank])]))
}

/** `x` [B, T, D] and `rows` [N] int32, numbers of its B · T rows, to `y` [N, D]. */
export function gatherRowsGraph(width: number): Uint8Array {
  return graph('gather rows', 2, g =>
    g.node('Gather', [flat(g, tensor(g, 'x', 3), width), tensor(g, 'rows', 1, 'int32')], { axis: 0 }),
  )
}

/**
 * The reverse: `rows` [N, D] and `places` [B, T] int32, for each place 0 or 1 + the number of the row that goes there,
 * to `y` [B, T, D]; onto `sum` where it is given.
 */
export function scatterRowsGraph(width: number, onto: boolean): Uint8Array {
  return graph('scatter rows', 3, g => {
    const zero = g.float(new Array<number>(width).fill(0), [1, width])
    const rows = g.node('Concat', [zero, tensor(g, 'rows', 2)], { axis: 0 })
    const placed = g.node('Gather', [rows, tensor(g, 'places', 2, 'int32')], { axis: 0 })
    return onto ? g.node('Add', [tensor(g, 'sum', 3), placed]) : placed
  })
}

/**
 * Embeddings of `ids` [B, T] int32, rows of `table` [V, D]: `y` [B, T, D]. Of a table in parts each adds its own to
 * `sum`: `mask` [B, T, 1] is 1 where the id is the part's, 0 elsewhere.
 */
export function embedGraph(scale: number, part?: 'first' | 'next'): Uint8Array {
  return graph('embed', 3, g => {
    const found = g.node('Gather', [tensor(g, 'table', 2), tensor(g, 'ids', 2, 'int32')], { axis: 0 })
    const scaled = scale === 1 ? found : g.node('Mul', [found, g.float(scale)])
    if (!part) return scaled
    const own = g.node('Mul', [scaled, tensor(g, 'mask', 3)])
    return part === 'first' ? own : g.node('Add', [tensor(g, 'sum', 3), own])
  })
}

/**
 * Adds rows of `dx` [B, T, D] to rows of `sum` [V, D]: `group` [1, B · T] int32 names the group of each row of dx, or −1,
 * `groups` [U, 1] int32 are 0 … U − 1, and group u goes to row `ids[u]` ([U] int32; `places` [U, 1] int64 says the same).
 * Groups are summed by a product, whose order is fixed, and written to rows that differ: where rows were added one by
 * one, the device's threads would decide over the order.
 */
export function embeddingGradientGraph(width: number, scale: number): Uint8Array {
  return graph('embedding gradient', 2, g => {
    const sum = tensor(g, 'sum', 2)
    const same = g.node('Equal', [g.input('groups', 'int32', ['U', 1]), g.input('group', 'int32', [1, 'N'])])
    const choice = g.node('Cast', [same], { to: elementTypeCode('float32') })
    const rows = g.node('Gemm', [choice, flat(g, tensor(g, 'dx', 3), width)], { alpha: { float: scale } })
    const before = g.node('Gather', [sum, g.input('ids', 'int32', ['U'])], { axis: 0 })
    return g.node('ScatterND', [sum, g.input('places', 'int64', ['U', 1]), g.node('Add', [before, rows])])
  })
}

/** `x` and a running `sum` [1] to `y` [1]: the sum with the squares of all elements of x added. */
export function squaresGraph(rank: number): Uint8Array {
  return graph('squares', 1, g => {
    // By rows first, so that a large matrix is summed by many threads and in short sums.
    const rows = g.node('ReduceSumSquare', [tensor(g, 'x', rank), g.ints([-1])], { keepdims: 1 })
    const all = rank === 1 ? rows : g.node('Reshape', [rows, g.ints([-1])])
    const total = rank === 1 ? all : g.node('ReduceSum', [all, g.ints([0])], { keepdims: 1 })
    return g.node('Add', [tensor(g, 'sum', 1), total])
  })
}

function flat(g: GraphBuilder, value: Value, width: number): Value {
  return g.node('Reshape', [value, g.ints([-1, width])])
}

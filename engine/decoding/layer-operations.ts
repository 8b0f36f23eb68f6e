/** A decoder layer in the decoding graph; shape suffixes as in decode-graph.ts. */
import { attentionScaleOf, type ModelConfig, windowOf } from '../architectures/config.ts'
import type { GateActivation, LayerOperations } from '../architectures/layer-operations.ts'
import { GELU } from '../graph/operations/geglu.ts'
import type { GraphBuilder, Value } from '../onnx/graph-builder.ts'
import { layerParameter } from '../weights/parameter-shapes.ts'
import {
  type Activation,
  COM,
  normNode,
  productNode,
  rowsOf,
  softCapNode,
  transposeNode,
} from './activation.ts'
import { cacheNames, INPUT } from './names.ts'

/** How activations are cut into heads: the same for every layer. */
export interface RowShapes {
  /** [1]: R */
  readonly count: Value
  /** By number of heads: [B, S, heads, E]. */
  readonly heads: ReadonlyMap<number, Value>
}

export function rowShapes(g: GraphBuilder, { heads, keyValueHeads, headDim }: ModelConfig): RowShapes {
  const shape_BS = g.node('Shape', [INPUT.positions])
  const of = (count: number) => g.node('Concat', [shape_BS, g.ints([count, headDim])], { axis: 0 })
  return {
    count: g.node('Reshape', [g.node('Size', [INPUT.positions]), g.ints([1])]),
    heads: new Map([heads, keyValueHeads].map(count => [count, of(count)])),
  }
}

export function layerOperations(
  g: GraphBuilder,
  config: ModelConfig,
  layer: number,
  shapes: RowShapes,
): LayerOperations<Activation> {
  const { headDim: E } = config
  const weightOf = (name: string) => layerParameter(layer, `${name}.weight`)
  /** [B, heads, S, E] */
  const headsOf = ({ layout, value, width }: Activation): Value => {
    if (layout === 'heads') return value
    const rows = layout === 'rows' ? value : transposeNode(g, value, 1, 0)
    const real = g.node('Slice', [rows, g.ints([0]), shapes.count, g.ints([0])])
    return transposeNode(g, g.node('Reshape', [real, shapes.heads.get(width / E)!]), 0, 2, 1, 3)
  }
  const heads = (value: Value, { width }: Activation): Activation => ({ layout: 'heads', value, width })
  return {
    norm: (x, name) => ({
      layout: 'rows',
      value: normNode(g, config, rowsOf(g, x), weightOf(name)),
      width: x.width,
    }),
    project(x, name, width, bias) {
      const product = productNode(g, weightOf(name), x, width)
      if (!bias) return product
      const column = g.node('Unsqueeze', [layerParameter(layer, `${name}.bias`), g.ints([1])])
      return { ...product, value: g.node('Add', [product.value, column]) }
    },
    headNorm: (x, name) => heads(normNode(g, config, headsOf(x), weightOf(name)), x),
    rotary(x) {
      const inputs = [headsOf(x), INPUT.positions, INPUT.cosines, INPUT.sines]
      return heads(g.node('RotaryEmbedding', inputs, { rotary_embedding_dim: 0 }, COM), x)
    },
    attention: (query, key, value) =>
      attention(g, config, layer, { query: headsOf(query), key: headsOf(key), value: headsOf(value) }),
    gated(activation, gate, up) {
      if (gate.layout !== up.layout) throw new Error('gate and up lie differently')
      return { ...gate, value: g.node('Mul', [activated(g, activation, gate.value), up.value]) }
    },
    add: (a, b) => ({ layout: 'rows', value: g.node('Add', [rowsOf(g, a), rowsOf(g, b)]), width: a.width }),
  }
}

/** Each [B, heads, S, E]. */
interface Heads {
  readonly query: Value
  readonly key: Value
  readonly value: Value
}

/** Attention of the pass to the cache and to itself; marks its keys and values as outputs. */
function attention(
  g: GraphBuilder,
  config: ModelConfig,
  layer: number,
  { query, key, value }: Heads,
): Activation {
  const { heads: H, keyValueHeads: K, headDim: E, attentionSoftCap } = config
  const names = cacheNames(layer)
  const keys = g.input(names.keys, 'float32', ['B', K, 1, 'L', E])
  const values = g.input(names.values, 'float32', ['B', K, 1, 'L', E])
  const scaled = g.node('Mul', [query, g.float(attentionScaleOf(config))])
  // Groups are a dimension of their own, over which keys and values broadcast.
  const queries = g.node('Reshape', [scaled, g.ints([0, K, H / K, -1, E])])
  const byGroup = (x: Value) => g.node('Unsqueeze', [x, g.ints([2])])
  const [newKeys, newValues] = [byGroup(key), byGroup(value)]
  g.output(newKeys, 'float32', ['B', K, 1, 'S', E], names.newKeys)
  g.output(newValues, 'float32', ['B', K, 1, 'S', E], names.newValues)
  const windowed = windowOf(config, layer) !== undefined
  const cacheMask = windowed ? INPUT.windowCacheMask : INPUT.cacheMask
  const passMask = windowed ? INPUT.windowPassMask : INPUT.passMask
  const scoresOf = (k: Value, mask: Value) => {
    const products = g.node('FusedMatMul', [queries, k], { transB: 1 }, COM)
    const scores = attentionSoftCap === undefined ? products : softCapNode(g, products, attentionSoftCap)
    return g.node('Add', [scores, mask])
  }
  const scores = g.node('Concat', [scoresOf(keys, cacheMask), scoresOf(newKeys, passMask)], { axis: -1 })
  const shares = g.node('Softmax', [scores], { axis: -1 })
  const cached = g.node('Shape', [cacheMask], { start: 4 })
  const shareOf = (from: Value, to: Value) => g.node('Slice', [shares, from, to, g.ints([4])])
  const attended = g.node('Add', [
    g.node('MatMul', [shareOf(g.ints([0]), cached), values]),
    g.node('MatMul', [shareOf(cached, g.ints([Number.MAX_SAFE_INTEGER])), newValues]),
  ])
  const byToken = transposeNode(g, g.node('Reshape', [attended, g.ints([0, H, -1, E])]), 0, 2, 1, 3)
  const rows = g.node('Reshape', [byToken, g.ints([-1, H * E])])
  return { layout: 'rows', value: g.node('Concat', [rows, INPUT.filler], { axis: 0 }), width: H * E }
}

function activated(g: GraphBuilder, activation: GateActivation, gate: Value): Value {
  const multiply = (a: Value, b: Value) => g.node('Mul', [a, b])
  if (activation === 'silu') return multiply(gate, g.node('Sigmoid', [gate]))
  const square = multiply(multiply(gate, gate), g.float(GELU.rate * GELU.cubic))
  const argument = multiply(gate, g.node('Add', [square, g.float(GELU.rate)]))
  return multiply(gate, g.node('Sigmoid', [argument]))
}

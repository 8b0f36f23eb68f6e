/** A decoder layer in the decoding graph; shape suffixes as in decode-graph.ts. */
import { attentionScaleOf, type ModelConfig, windowOf } from '../architectures/config.ts'
import type { LayerOperations } from '../architectures/layer-operations.ts'
import type { GraphBuilder, Value } from '../onnx/graph-builder.ts'
import { layerParameter } from '../weights/parameter-shapes.ts'
import { type Activation, COM, gateNode, normNode, rowsOf, softCapNode, transposeNode } from './activation.ts'
import { cacheNames, INPUT } from './names.ts'
import type { Products } from './products.ts'

/** How activations are cut into heads: the same for every layer. */
export interface RowShapes {
  /** By number of heads: [B, S, heads, E]. */
  readonly heads: ReadonlyMap<number, Value>
  /** [B, K, Q, S, L] and [B, K, Q, S, T]: see `attention`. */
  readonly cacheScores: Value
  readonly blockScores: Value
}

export function rowShapes(g: GraphBuilder, { heads, keyValueHeads, headDim }: ModelConfig): RowShapes {
  const shape_BS = g.node('Shape', [INPUT.positions])
  const lengths = (of: Value, axis: number) => g.node('Shape', [of], { start: axis, end: axis + 1 })
  const scores = (mask: Value) => {
    const groups = g.ints([keyValueHeads, queryRows({ heads, keyValueHeads })])
    const [B, S, last] = [lengths(INPUT.positions, 0), lengths(INPUT.positions, 1), lengths(mask, 4)]
    return g.node('Concat', [B, groups, S, last], { axis: 0 })
  }
  const of = (count: number) => g.node('Concat', [shape_BS, g.ints([count, headDim])], { axis: 0 })
  return {
    heads: new Map([heads, keyValueHeads].map(count => [count, of(count)])),
    cacheScores: scores(INPUT.cacheMask),
    blockScores: scores(INPUT.blockMask),
  }
}

export function layerOperations(
  g: GraphBuilder,
  config: ModelConfig,
  layer: number,
  shapes: RowShapes,
  products: Products,
): LayerOperations<Activation> {
  const { headDim: E } = config
  const weightOf = (name: string) => layerParameter(layer, `${name}.weight`)
  /** [B, heads, S, E] */
  const headsOf = ({ layout, value, width }: Activation): Value =>
    layout === 'heads'
      ? value
      : transposeNode(g, g.node('Reshape', [value, shapes.heads.get(width / E)!]), 0, 2, 1, 3)
  const rows = (value: Value, width: number): Activation => ({ layout: 'rows', value, width })
  const heads = (value: Value, { width }: Activation): Activation => ({ layout: 'heads', value, width })
  return {
    norm: (x, name) => rows(normNode(g, config, rowsOf(x), weightOf(name)), x.width),
    project(x, name, width, bias) {
      const product = products(weightOf(name), rowsOf(x), width)
      return rows(
        bias ? g.node('Add', [product, layerParameter(layer, `${name}.bias`)]) : product,
        width,
      )
    },
    headNorm: (x, name) => heads(normNode(g, config, headsOf(x), weightOf(name)), x),
    rotary(x) {
      const inputs = [headsOf(x), INPUT.positions, INPUT.cosines, INPUT.sines]
      return heads(g.node('RotaryEmbedding', inputs, { rotary_embedding_dim: 0 }, COM), x)
    },
    attention(query, key, value) {
      const heads = { query: headsOf(query), key: headsOf(key), value: headsOf(value) }
      return attention(g, config, layer, shapes, heads)
    },
    gated: (activation, gate, up) =>
      rows(g.node('Mul', [gateNode(g, activation, rowsOf(gate)), rowsOf(up)]), gate.width),
    add: (a, b) => rows(g.node('Add', [rowsOf(a), rowsOf(b)]), a.width),
  }
}

/** Each [B, heads, S, E]. */
interface Heads {
  readonly query: Value
  readonly key: Value
  readonly value: Value
}

/**
 * Q: query rows that share a key, for each token. A product with a single row would add in another order than one of
 * several, so where a key serves one head only, its row is there twice.
 */
export function queryRows({ heads, keyValueHeads }: Pick<ModelConfig, 'heads' | 'keyValueHeads'>): number {
  return heads === keyValueHeads ? 2 : heads / keyValueHeads
}

/**
 * Attention of the pass to the full blocks of the cache, and to the block that is being filled, where the pass's own
 * keys and values take their places first: so a token sees the same tensors whether it is read alone or after others
 * of the same pass. The new keys and values are outputs too.
 */
function attention(
  g: GraphBuilder,
  config: ModelConfig,
  layer: number,
  { cacheScores, blockScores }: RowShapes,
  { query, key, value }: Heads,
): Activation {
  const { heads: H, keyValueHeads: K, headDim: E, attentionSoftCap } = config
  const names = cacheNames(layer)
  const keys = g.input(names.keys, 'float32', ['B', K, 'L', E])
  const values = g.input(names.values, 'float32', ['B', K, 'L', E])
  const placed = (block: string, made: Value) =>
    g.node('ScatterND', [g.input(block, 'float32', ['B', K, 'T', E]), INPUT.places, made])
  const blockKeys = placed(names.blockKeys, key)
  const blockValues = placed(names.blockValues, value)

  const scaled = g.node('Mul', [query, g.float(attentionScaleOf(config))])
  const grouped = g.node('Reshape', [scaled, g.ints([0, K, -1, E])])
  const queries = H === K ? g.node('Concat', [grouped, grouped], { axis: 2 }) : grouped
  const scoresOf = (k: Value, shape: Value, mask: Value) => {
    const products = g.node('FusedMatMul', [queries, k], { transB: 1 }, COM)
    const scores = attentionSoftCap === undefined ? products : softCapNode(g, products, attentionSoftCap)
    return g.node('Add', [g.node('Reshape', [scores, shape], { allowzero: 1 }), mask])
  }
  const windowed = windowOf(config, layer) !== undefined
  const scores = [
    scoresOf(keys, cacheScores, windowed ? INPUT.windowCacheMask : INPUT.cacheMask),
    scoresOf(blockKeys, blockScores, windowed ? INPUT.windowBlockMask : INPUT.blockMask),
  ]
  const shares = g.node('Softmax', [g.node('Concat', scores, { axis: -1 })], { axis: -1 })
  const flat = g.node('Concat', [g.node('Shape', [queries], { end: 3 }), g.ints([-1])], { axis: 0 })
  const shares_BKQL = g.node('Reshape', [shares, flat])
  const cached = g.node('Shape', [INPUT.cacheMask], { start: 4 })
  const shareOf = (from: Value, to: Value) => g.node('Slice', [shares_BKQL, from, to, g.ints([3])])
  const attended = g.node('Add', [
    g.node('MatMul', [shareOf(g.ints([0]), cached), values]),
    g.node('MatMul', [shareOf(cached, g.ints([Number.MAX_SAFE_INTEGER])), blockValues]),
  ])
  const [once] =
    H === K ? g.nodes('Split', [attended], { axis: 2, num_outputs: 2 }, { outputs: 2 }) : [attended]
  const byToken = transposeNode(g, g.node('Reshape', [once!, g.ints([0, H, -1, E])]), 0, 2, 1, 3)
  const rows = g.node('Reshape', [byToken, g.ints([-1, H * E])])
  g.output(key, 'float32', ['B', K, 'S', E], names.newKeys)
  g.output(value, 'float32', ['B', K, 'S', E], names.newValues)
  return { layout: 'rows', value: rows, width: H * E }
}

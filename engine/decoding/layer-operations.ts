/** A decoder layer in the decoding graph; shape suffixes as in decode-graph.ts. */
import { attentionScaleOf, type ModelConfig, windowOf } from '../architectures/config.ts'
import type { LayerOperations } from '../architectures/layer-operations.ts'
import { float } from '../onnx/attribute.ts'
import type { GraphBuilder, Value } from '../onnx/graph-builder.ts'
import { layerParameter } from '../weights/parameter-shapes.ts'
import {
  type Activation,
  COM,
  gateNode,
  normNode,
  projectNode,
  rowsOf,
  softCapNode,
  transposeNode,
  wantedOf,
} from './activation.ts'
import { cacheNames, INPUT } from './names.ts'

/** What is the same for every layer. */
export interface Shared {
  /** How activations are cut into heads, by their number: [B, S, heads, E]. */
  readonly heads: ReadonlyMap<number, Value>
  /** [B, 1, Q, T + L], for each query row: see `attention`. */
  readonly mask: Value
  readonly windowMask: Value | undefined
  /** What fills up attention's rows: queries [spare, K, Q, E], and [1] B. */
  readonly spare: { readonly queries: Value; readonly rows: Value } | undefined
}

/**
 * Attention multiplies head by head. There are at least `products`, some of which may only fill up, so that threads
 * share none (runtime/unshared-products.ts).
 */
export function fewestRows({ keyValueHeads }: Pick<ModelConfig, 'keyValueHeads'>, products: number): number {
  return Math.ceil(products / keyValueHeads)
}

export function sharedOfLayers(g: GraphBuilder, config: ModelConfig, products: number): Shared {
  const { heads, keyValueHeads, headDim, slidingWindow } = config
  const shape_BS = g.node('Shape', [INPUT.positions])
  const of = (count: number) => g.node('Concat', [shape_BS, g.ints([count, headDim])], { axis: 0 })
  const mask = (name: string) => {
    const given = g.input(name, 'float32', ['B + spare', 1, 'S', 'T + L'])
    return g.node('Concat', Array(queryRows(config)).fill(given), { axis: 2 })
  }
  const full = mask(INPUT.mask)
  const spare = () => {
    const count = g.input(INPUT.spare, 'int64', [1])
    const queries = g.node('Shape', [full], { start: 2, end: 3 })
    const shape = g.node('Concat', [count, g.ints([keyValueHeads]), queries, g.ints([headDim])], { axis: 0 })
    return {
      queries: g.node('ConstantOfShape', [shape]),
      rows: g.node('Shape', [INPUT.positions], { end: 1 }),
    }
  }
  return {
    heads: new Map([heads, keyValueHeads].map(count => [count, of(count)])),
    mask: full,
    windowMask: slidingWindow && mask(INPUT.windowMask),
    spare: fewestRows(config, products) > 1 ? spare() : undefined,
  }
}

export function layerOperations(
  g: GraphBuilder,
  config: ModelConfig,
  layer: number,
  shared: Shared,
): LayerOperations<Activation> {
  const { headDim: E } = config
  const weightOf = (name: string) => layerParameter(layer, `${name}.weight`)
  /** [B, heads, S, E] */
  const headsOf = ({ layout, value, width }: Activation): Value =>
    layout === 'heads'
      ? value
      : transposeNode(g, g.node('Reshape', [value, shared.heads.get(width / E)!]), 0, 2, 1, 3)
  /** The same rows as of x. */
  const rows = ({ layout }: Activation, value: Value, width: number): Activation => ({ layout, value, width })
  const heads = (value: Value, { width }: Activation): Activation => ({ layout: 'heads', value, width })
  return {
    norm: (x, name) => rows(x, normNode(g, config, rowsOf(x), weightOf(name)), x.width),
    project(x, name, width, bias) {
      const product = projectNode(g, weightOf(name), [width, x.width], rowsOf(x))
      return rows(x, bias ? g.node('Add', [product, layerParameter(layer, `${name}.bias`)]) : product, width)
    },
    headNorm: (x, name) => heads(normNode(g, config, headsOf(x), weightOf(name)), x),
    rotary(x) {
      const inputs = [headsOf(x), INPUT.positions, INPUT.cosines, INPUT.sines]
      return heads(g.node('RotaryEmbedding', inputs, { rotary_embedding_dim: 0 }, COM), x)
    },
    attention(query, key, value) {
      const heads = { query: headsOf(query), key: headsOf(key), value: headsOf(value) }
      const attended = attention(g, config, layer, shared, heads)
      // From here on every token goes its own way, and no further layer looks at those whose logits nobody wants.
      return layer === config.layers - 1 ? wantedOf(g, attended) : attended
    },
    gated: (activation, gate, up) =>
      rows(gate, g.node('Mul', [gateNode(g, activation, rowsOf(gate)), rowsOf(up)]), gate.width),
    add(a, b) {
      const both = b.layout === 'wanted' ? wantedOf(g, a) : a
      return rows(both, g.node('Add', [rowsOf(both), rowsOf(b)]), a.width)
    },
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
function queryRows({ heads, keyValueHeads }: Pick<ModelConfig, 'heads' | 'keyValueHeads'>): number {
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
  { mask, windowMask, spare }: Shared,
  { query, key, value }: Heads,
): Activation {
  const { heads: H, keyValueHeads: K, headDim: E, attentionSoftCap } = config
  const names = cacheNames(layer)
  const keys = g.input(names.keys, 'float32', ['B + spare', K, 'L', E])
  const values = g.input(names.values, 'float32', ['B + spare', K, 'L', E])
  const placed = (block: string, made: Value) =>
    g.node('ScatterND', [g.input(block, 'float32', ['B + spare', K, 'T', E]), INPUT.places, made])
  const blockKeys = placed(names.blockKeys, key)
  const blockValues = placed(names.blockValues, value)

  const grouped = g.node('Reshape', [query, g.ints([0, K, -1, E])])
  const own = H === K ? g.node('Concat', [grouped, grouped], { axis: 2 }) : grouped
  const queries = spare ? g.node('Concat', [own, spare.queries], { axis: 0 }) : own
  const alpha = float(attentionScaleOf(config))
  const productOf = (k: Value) => g.node('FusedMatMul', [queries, k], { transB: 1, alpha }, COM)
  const products = g.node('Concat', [productOf(blockKeys), productOf(keys)], { axis: 3 })
  const scores = attentionSoftCap === undefined ? products : softCapNode(g, products, attentionSoftCap)
  const windowed = windowOf(config, layer) !== undefined
  const masked = g.node('Add', [scores, windowed ? windowMask! : mask])
  const shares = g.node('Softmax', [masked], { axis: 3 })
  const [ofBlock, ofCache] = g.nodes('Split', [shares, INPUT.spans], { axis: 3 }, { outputs: 2 })
  const all = g.node('Add', [g.node('MatMul', [ofCache!, values]), g.node('MatMul', [ofBlock!, blockValues])])
  const attended = spare ? g.node('Slice', [all, g.ints([0]), spare.rows, g.ints([0])]) : all
  const [once] =
    H === K ? g.nodes('Split', [attended], { axis: 2, num_outputs: 2 }, { outputs: 2 }) : [attended]
  const byToken = transposeNode(g, g.node('Reshape', [once!, g.ints([0, H, -1, E])]), 0, 2, 1, 3)
  g.output(key, 'float32', ['B', K, 'S', E], names.newKeys)
  g.output(value, 'float32', ['B', K, 'S', E], names.newValues)
  return { layout: 'rows', value: g.node('Reshape', [byToken, g.ints([-1, H * E])]), width: H * E }
}

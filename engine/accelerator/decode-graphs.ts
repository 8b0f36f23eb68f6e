/**
 * The whole model as graphs for decoding on a device, against a resident cache. Shape suffixes: R rows of the cache,
 * S tokens of a pass, D hidden size, H query heads of E in K groups of G, V vocabulary, L positions of the cache.
 *
 * - `read` reads S tokens of one row's prompt and gives their keys and values; `append` writes these into the cache.
 * - `step` reads a token of each of the R rows and gives the next cache. R and L are fixed during a call, so a row's
 *   sums have the same order whatever the other rows are.
 * - A row without a sequence is computed too, looking at position 0, and is written over before it counts.
 */
import { architectureOf } from '../architectures/architecture.ts'
import { attentionScaleOf, type ModelConfig, windowOf } from '../architectures/config.ts'
import type { LayerOperations } from '../architectures/layer-operations.ts'
import { layerParameters } from '../architectures/layer-parameters.ts'
import { COM, gateNode, normNode, softCapNode } from '../decoding/activation.ts'
import type { GraphBuilder, Value } from '../onnx/graph-builder.ts'
import { FINAL_NORM, layerParameter } from '../weights/parameter-shapes.ts'
import { partName, type Runs } from './head-graphs.ts'
import { LoweringBuilder } from './lowering-builder.ts'

/** Names of a layer's keys and values: cache inputs and outputs, and what a pass made. */
export function cacheNames(layer: number) {
  return [`keys.${layer}`, `values.${layer}`] as const
}

/** Every layer's. */
export function allCacheNames({ layers }: ModelConfig): string[] {
  return Array.from({ length: layers }, (_, layer) => cacheNames(layer)).flat()
}

/** An output's name, where the input has it already. */
export function nextName(name: string): string {
  return `next.${name}`
}

type Kind = 'read' | 'step'

/**
 * Inputs, of `read` and of `step` where they differ:
 *
 *     x                          [1, S, D] or [R, 1, D], embedded
 *     positions                  [1, S] or [R, 1] int64
 *     cosines, sines             [context, E/2]
 *     mask                       [S, L + S] or [R, 1, L]; `window.mask` likewise, where layers have windows
 *     keys.N, values.N           [R·K, L, E], the cache
 *     row                        read: [K] int32, the cache's rows of the sequence
 *     places                     step: [R·K, 2] int64, where in the cache the token goes
 *     wanted                     step: [N] int32, the rows whose logits are wanted
 *     heads.shape, groups.shape  [3] int64, of attention's scores: [H, S, L + S] and [K, G·S, L + S], or [R, H, L] and
 *                                [R·K, G, L]
 *
 * and the layers' weights, the final norm and `head.P`.
 *
 * Outputs: `logits` [1, V] of what follows the last token, or [N, V]; the `next.` of each cache name: what the pass made,
 * [K, S, E], or the next cache.
 */
export function decodeGraph(config: ModelConfig, kind: Kind, runs: Runs): Uint8Array {
  const { hiddenSize: D, headDim: E, keyValueHeads: K, vocabularySize: V } = config
  const g = new LoweringBuilder(kind)
  const [B, S] = kind === 'read' ? ([1, 'S'] as const) : (['R', 1] as const)
  const embedded = g.input('x', 'float32', [B, S, D])
  g.input('positions', 'int64', [B, S])
  for (const table of ['cosines', 'sines']) g.input(table, 'float32', ['P', E / 2])
  const maskShape = kind === 'read' ? ['S', 'M'] : ['R', 1, 'L']
  g.input('mask', 'float32', maskShape)
  if (config.slidingWindow) g.input('window.mask', 'float32', maskShape)
  if (kind === 'read') g.input('row', 'int32', [K])
  else g.input('places', 'int64', ['RK', 2])
  for (const shape of ['heads.shape', 'groups.shape']) g.input(shape, 'int64', [3])
  for (const name of allCacheNames(config)) g.input(name, 'float32', ['RK', 'L', E])
  const shapes = layerParameters(config)
  let x = g.node('Reshape', [embedded, g.ints([-1, D])])
  for (let layer = 0; layer < config.layers; layer++) {
    for (const [name, shape] of shapes) g.input(layerParameter(layer, name), 'float32', shape)
    x = architectureOf(config).layer(layerOperations(g, config, layer, kind), config, {
      value: x,
      width: D,
    }).value
  }
  const last = kind === 'read' ? g.node('Slice', [x, g.ints([-1]), g.ints([2 ** 31 - 1]), g.ints([0])]) : x
  const hidden = normNode(g, config, last, g.input(FINAL_NORM, 'float32', [D]))
  const parts = runs.map(([from, to], part) => {
    const head = g.input(partName('head', part), 'float32', [to - from, D])
    return g.node('Gemm', [hidden, head], { transB: 1 })
  })
  const logits = parts.length === 1 ? parts[0]! : g.node('Concat', parts, { axis: 1 })
  const { logitSoftCap } = config
  const capped = logitSoftCap === undefined ? logits : softCapNode(g, logits, logitSoftCap)
  // Rows without a sequence are computed, but need not be brought to the CPU.
  const wanted =
    kind === 'read' ? capped : g.node('Gather', [capped, g.input('wanted', 'int32', ['N'])], { axis: 0 })
  g.output(wanted, 'float32', ['N', V], 'logits')
  return g.build()
}

/** The caches, each [R·K, L, E], `places` [K, S, 2] int64 and `made.` of each, [K, S, E], to the `next.` of each. */
export function appendGraph(config: ModelConfig): Uint8Array {
  const { headDim: E, keyValueHeads: K } = config
  const g = new LoweringBuilder('append')
  const places = g.input('places', 'int64', [K, 'S', 2])
  for (const name of allCacheNames(config)) {
    const cache = g.input(name, 'float32', ['RK', 'L', E])
    const made = g.input(`made.${name}`, 'float32', [K, 'S', E])
    g.output(g.node('ScatterND', [cache, places, made]), 'float32', ['RK', 'L', E], nextName(name))
  }
  return g.build()
}

/** [N, width], a row for each token of the pass. */
interface Rows {
  readonly value: Value
  readonly width: number
}

function layerOperations(
  g: GraphBuilder,
  config: ModelConfig,
  layer: number,
  kind: Kind,
): LayerOperations<Rows> {
  const { headDim: E } = config
  const weightOf = (name: string) => layerParameter(layer, `${name}.weight`)
  const reshape = (value: Value, ...shape: number[]) => g.node('Reshape', [value, g.ints(shape)])
  return {
    norm: (x, name) => ({ ...x, value: normNode(g, config, x.value, weightOf(name)) }),
    project(x, name, width, bias) {
      const inputs = [x.value, weightOf(name)]
      if (bias) inputs.push(layerParameter(layer, `${name}.bias`))
      return { value: g.node('Gemm', inputs, { transB: 1 }), width }
    },
    headNorm(x, name) {
      const heads = reshape(x.value, -1, x.width / E, E)
      return { ...x, value: reshape(normNode(g, config, heads, weightOf(name)), -1, x.width) }
    },
    rotary(x) {
      const batch = kind === 'read' ? reshape(x.value, 1, -1, x.width) : reshape(x.value, -1, 1, x.width)
      const turned = g.node('RotaryEmbedding', [batch, 'positions', 'cosines', 'sines'], {}, COM)
      return { ...x, value: reshape(turned, -1, x.width) }
    },
    attention: (query, key, value) =>
      kind === 'read'
        ? readAttention(g, config, layer, query.value, key.value, value.value)
        : stepAttention(g, config, layer, query.value, key.value, value.value),
    gated: (activation, gate, up) => ({
      ...gate,
      value: g.node('Mul', [gateNode(g, activation, gate.value), up.value]),
    }),
    add: (a, b) => ({ ...a, value: g.node('Add', [a.value, b.value]) }),
  }
}

/** Of q [S, H·E], k and v [S, K·E] to what the row has cached and to each other. */
function readAttention(
  g: GraphBuilder,
  config: ModelConfig,
  layer: number,
  q: Value,
  k: Value,
  v: Value,
): Rows {
  const { heads: H, keyValueHeads: K, headDim: E } = config
  const reshape = (value: Value, ...shape: number[]) => g.node('Reshape', [value, g.ints(shape)])
  const byHead = (value: Value, heads: number) =>
    g.node('Transpose', [reshape(value, -1, heads, E)], { perm: [1, 0, 2] })
  const queries = reshape(byHead(q, H), K, -1, E)
  const [keys, values] = cacheNames(layer).map((name, index) => {
    const made = byHead(index === 0 ? k : v, K)
    g.output(made, 'float32', [K, 'S', E], nextName(name))
    return g.node('Concat', [g.node('Gather', [name, 'row'], { axis: 0 }), made], { axis: 1 })
  }) as [Value, Value]
  const attended = attendedOf(g, config, layer, queries, keys, values)
  const byToken = g.node('Transpose', [reshape(attended, H, -1, E)], { perm: [1, 0, 2] })
  return { value: reshape(byToken, -1, H * E), width: H * E }
}

/** Of q [R, H·E] to the cache, into which k and v [R, K·E] go first. */
function stepAttention(
  g: GraphBuilder,
  config: ModelConfig,
  layer: number,
  q: Value,
  k: Value,
  v: Value,
): Rows {
  const { heads: H, keyValueHeads: K, headDim: E } = config
  const reshape = (value: Value, ...shape: number[]) => g.node('Reshape', [value, g.ints(shape)])
  const [keys, values] = cacheNames(layer).map((name, index) => {
    const made = reshape(index === 0 ? k : v, -1, E)
    const next = g.node('ScatterND', [name, 'places', made])
    g.output(next, 'float32', ['RK', 'L', E], nextName(name))
    return next
  }) as [Value, Value]
  const attended = attendedOf(g, config, layer, reshape(q, -1, H / K, E), keys, values)
  return { value: reshape(attended, -1, H * E), width: H * E }
}

/**
 * Of queries [.., G·S, E] or [.., G, E], keys and values [.., L, E] of each key and value head. Scores are masked by
 * query heads: `heads.shape` and `groups.shape` say how the same numbers lie either way.
 */
function attendedOf(
  g: GraphBuilder,
  config: ModelConfig,
  layer: number,
  queries: Value,
  keys: Value,
  values: Value,
): Value {
  const { attentionSoftCap } = config
  const scaled = g.node('Mul', [queries, g.float(attentionScaleOf(config))])
  const products = g.node('FusedMatMul', [scaled, keys], { transB: 1 }, COM)
  const scores = attentionSoftCap === undefined ? products : softCapNode(g, products, attentionSoftCap)
  const masked = g.node('Add', [g.node('Reshape', [scores, 'heads.shape']), maskOf(config, layer)])
  const shares = g.node('Softmax', [masked], { axis: -1 })
  return g.node('MatMul', [g.node('Reshape', [shares, 'groups.shape']), values])
}

function maskOf(config: ModelConfig, layer: number): Value {
  return windowOf(config, layer) === undefined ? 'mask' : 'window.mask'
}

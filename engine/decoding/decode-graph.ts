/**
 * The whole model as one graph that reads tokens against a key/value cache and gives the logits of what comes
 * next. It serves both to read a prompt (one row of many tokens) and to decode (many rows of one token). Shape
 * suffixes: B rows, S tokens a row, R = B·S, N ≥ R rows of the matrix products, D hidden size, H query heads
 * of E in K groups of G, F intermediate size, V vocabulary, L positions of the cache.
 *
 * - Weights are inputs, so a new policy costs no new session.
 * - Projections multiply from the left, W [out, in] · Xᵀ: the large W is read as it lies in memory and only the
 *   small X is packed. The cost is the same from 2 to 32 columns.
 * - The cache is an input only, and the new keys and values are outputs: onnxruntime-node copies every output
 *   into a new array, also those that were given a place, so a cache that came back would be copied at each token.
 */
import type { ModelConfig } from '../architectures/config.ts'
import { float } from '../onnx/attribute.ts'
import { GraphBuilder, type Value } from '../onnx/graph-builder.ts'
import {
  EMBEDDING,
  FINAL_NORM,
  headName,
  layerParameter,
  parameterShapes,
} from '../weights/parameter-shapes.ts'

/** Inputs beside the weights and the cache. */
export const INPUT = {
  /** [N] int32: the R tokens, then any that only fill up. */
  tokens: 'tokens',
  /** [B, S] int64: place of each token in its sequence. */
  positions: 'positions',
  /** [M] int32: of which of the N tokens logits are wanted. */
  last: 'last',
  /** [N − R, H·E] zeros: attention's result for the tokens that fill up. */
  filler: 'filler',
  /** [B, 1, 1, 1, L]: 0 where the row's cache holds a token, −∞ where not. */
  cacheMask: 'cache_mask',
  /** [S, S]: 0 where a token of the pass may look at another, −∞ where not. */
  passMask: 'pass_mask',
  /** [context, E/2] each */
  cosines: 'cosines',
  sines: 'sines',
} as const

/** [M, V] */
export const LOGITS = 'logits'

/** Names of a layer's cache: inputs [B, K, 1, L, E], and the pass's own keys and values [B, K, 1, S, E]. */
export function cacheNames(layer: number) {
  return {
    keys: `keys.${layer}`,
    values: `values.${layer}`,
    newKeys: `new_keys.${layer}`,
    newValues: `new_values.${layer}`,
  }
}

/** The model's bytes. */
export function decodeGraph(config: ModelConfig): Uint8Array {
  const { heads: H, keyValueHeads: K, headDim: E, vocabularySize: V } = config
  const g = new GraphBuilder('decode')
  const tokens = g.input(INPUT.tokens, 'int32', ['N'])
  const positions = g.input(INPUT.positions, 'int64', ['B', 'S'])
  const last = g.input(INPUT.last, 'int32', ['M'])
  const filler = g.input(INPUT.filler, 'float32', ['N - R', H * E])
  const cacheMask = g.input(INPUT.cacheMask, 'float32', ['B', 1, 1, 1, 'L'])
  const passMask = g.input(INPUT.passMask, 'float32', ['S', 'S'])
  const cosines = g.input(INPUT.cosines, 'float32', ['P', E / 2])
  const sines = g.input(INPUT.sines, 'float32', ['P', E / 2])
  for (const [name, shape] of parameterShapes(config)) g.input(name, 'float32', shape)

  const com = { domain: 'com.microsoft' }
  const norm = (x: Value, weight: Value) => {
    const attributes = { axis: -1, epsilon: float(config.normEpsilon), stash_type: 1 }
    return g.node('SimplifiedLayerNormalization', [x, weight], attributes)
  }
  const transpose = (x: Value, ...perm: number[]) => g.node('Transpose', [x], { perm })
  /** [N, in] to [out, N]. */
  const project = (weight: Value, x: Value) => g.node('FusedMatMul', [weight, x], { transB: 1 }, com)
  const multiply = (a: Value, b: Value) => g.node('Mul', [a, b])
  const add = (a: Value, b: Value) => g.node('Add', [a, b])

  const shape_BS = g.node('Shape', [positions])
  const count_R = g.node('Reshape', [g.node('Size', [positions]), g.ints([1])])
  const shapeOf = (...dims: number[]) => g.node('Concat', [shape_BS, g.ints(dims)], { axis: 0 })
  const headShape = new Map([H, K].map(heads => [heads, shapeOf(heads, E)]))
  /** [heads·E, N] to [B, heads, S, E], without the tokens that fill up. */
  const splitHeads = (x: Value, heads: number) => {
    const rows = g.node('Slice', [transpose(x, 1, 0), g.ints([0]), count_R, g.ints([0])])
    return transpose(g.node('Reshape', [rows, headShape.get(heads)!]), 0, 2, 1, 3)
  }
  const rotate = (x: Value) =>
    g.node('RotaryEmbedding', [x, positions, cosines, sines], { rotary_embedding_dim: 0 }, com)
  const byGroup = (x: Value) => g.node('Unsqueeze', [x, g.ints([2])])

  let x_ND = g.node('Gather', [EMBEDDING, tokens], { axis: 0 })
  for (let layer = 0; layer < config.layers; layer++) {
    const weight = (name: string) => layerParameter(layer, `${name}.weight`)
    const names = cacheNames(layer)
    const keys = g.input(names.keys, 'float32', ['B', K, 1, 'L', E])
    const values = g.input(names.values, 'float32', ['B', K, 1, 'L', E])
    const normed_ND = norm(x_ND, weight('input_layernorm'))
    const headsOf = (name: string, heads: number) =>
      splitHeads(project(weight(`self_attn.${name}_proj`), normed_ND), heads)
    const scaled = multiply(rotate(headsOf('q', H)), g.float(1 / Math.sqrt(E)))
    // Groups are a dimension of their own, over which keys and values broadcast.
    const queries = g.node('Reshape', [scaled, g.ints([0, K, H / K, -1, E])])
    const newKeys = byGroup(rotate(headsOf('k', K)))
    const newValues = byGroup(headsOf('v', K))
    g.output(newKeys, 'float32', ['B', K, 1, 'S', E], names.newKeys)
    g.output(newValues, 'float32', ['B', K, 1, 'S', E], names.newValues)
    const scoresOf = (k: Value) => g.node('FusedMatMul', [queries, k], { transB: 1 }, com)
    const scores = [add(scoresOf(keys), cacheMask), add(scoresOf(newKeys), passMask)]
    const shares = g.node('Softmax', [g.node('Concat', scores, { axis: -1 })], { axis: -1 })
    const cached = g.node('Shape', [cacheMask], { start: 4 })
    const shareOf = (from: Value, to: Value) => g.node('Slice', [shares, from, to, g.ints([4])])
    const attended = add(
      g.node('MatMul', [shareOf(g.ints([0]), cached), values]),
      g.node('MatMul', [shareOf(cached, g.ints([Number.MAX_SAFE_INTEGER])), newValues]),
    )
    const byToken = transpose(g.node('Reshape', [attended, g.ints([0, H, -1, E])]), 0, 2, 1, 3)
    const rows = g.node('Reshape', [byToken, g.ints([-1, H * E])])
    const filled_ND = g.node('Concat', [rows, filler], { axis: 0 })
    x_ND = add(x_ND, transpose(project(weight('self_attn.o_proj'), filled_ND), 1, 0))
    const middle_ND = norm(x_ND, weight('post_attention_layernorm'))
    const gate_FN = project(weight('mlp.gate_proj'), middle_ND)
    const active_FN = multiply(
      multiply(gate_FN, g.node('Sigmoid', [gate_FN])),
      project(weight('mlp.up_proj'), middle_ND),
    )
    x_ND = add(x_ND, transpose(g.node('MatMul', [weight('mlp.down_proj'), active_FN]), 1, 0))
  }
  const last_MD = norm(g.node('Gather', [x_ND, last], { axis: 0 }), FINAL_NORM)
  g.output(transpose(project(headName(config), last_MD), 1, 0), 'float32', ['M', V], LOGITS)
  return g.build()
}

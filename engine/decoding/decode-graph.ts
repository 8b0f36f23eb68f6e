/**
 * The whole model as one graph that reads tokens against a key/value cache and gives the logits of what comes
 * next. Shape suffixes: B rows, S tokens a row in this pass, N = B·S, D hidden size, H query heads of E, K
 * key/value heads, F intermediate size, V vocabulary, L length of the cache.
 *
 * Weights are inputs, so a new policy costs no new session. Projections multiply from the left
 * (W [out, in] · X [in, N]): a matrix product streams its left side once and packs its right side, so the
 * large W is read as it lies in memory and only the small X is packed.
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
  /** [B, S] int32 */
  tokens: 'tokens',
  /** [B] int32: where in the N tokens each row's last one is. */
  last: 'last',
  /** [B] int32: tokens of each row in the cache after this pass, less one. */
  lengths: 'lengths',
  /** [B, S] int64: place of each token in its sequence. */
  positions: 'positions',
  /** [1] int32: the greatest of the rows' lengths after this pass. */
  total: 'total',
  /** [context, E/2] each */
  cosines: 'cosines',
  sines: 'sines',
} as const

/** [B, V] */
export const LOGITS = 'logits'

/** Names of a layer's cache, [B, K, L, E]; input and output may be one buffer. */
export function cacheNames(layer: number) {
  return {
    pastKey: `past_key.${layer}`,
    pastValue: `past_value.${layer}`,
    presentKey: `present_key.${layer}`,
    presentValue: `present_value.${layer}`,
  }
}

/** The model's bytes. */
export function decodeGraph(config: ModelConfig): Uint8Array {
  const { hiddenSize: D, heads, keyValueHeads, headDim: E, normEpsilon } = config
  const g = new GraphBuilder('decode')
  const tokens = g.input(INPUT.tokens, 'int32', ['B', 'S'])
  const last = g.input(INPUT.last, 'int32', ['B'])
  const lengths = g.input(INPUT.lengths, 'int32', ['B'])
  const positions = g.input(INPUT.positions, 'int64', ['B', 'S'])
  const total = g.input(INPUT.total, 'int32', [1])
  const cosines = g.input(INPUT.cosines, 'float32', ['P', E / 2])
  const sines = g.input(INPUT.sines, 'float32', ['P', E / 2])
  for (const [name, shape] of parameterShapes(config)) g.input(name, 'float32', shape)

  const norm = (x: Value, weight: Value) =>
    g.node('SimplifiedLayerNormalization', [x, weight], {
      axis: -1,
      epsilon: float(normEpsilon),
      stash_type: 1,
    })
  const transpose = (x: Value) => g.node('Transpose', [x], { perm: [1, 0] })
  const columns = (x: Value, width: number) => g.node('Reshape', [transpose(x), g.ints([width, -1])])
  const project = (weight: Value, x_DN: Value) => g.node('MatMul', [weight, x_DN])
  const shape_BS = g.node('Shape', [tokens])
  const rows = (x: Value, width: number) =>
    g.node('Reshape', [transpose(x), g.node('Concat', [shape_BS, g.ints([width])], { axis: 0 })])

  const rotate = (x: Value, heads: number) =>
    g.node(
      'RotaryEmbedding',
      [x, positions, cosines, sines],
      { num_heads: heads, rotary_embedding_dim: E },
      { domain: 'com.microsoft' },
    )

  const flat_N = g.node('Reshape', [tokens, g.ints([-1])])
  let x_ND = g.node('Gather', [EMBEDDING, flat_N], { axis: 0 })
  for (let layer = 0; layer < config.layers; layer++) {
    const weight = (name: string) => layerParameter(layer, `${name}.weight`)
    const cache = cacheNames(layer)
    const cacheShape = ['B', keyValueHeads, 'L', E]
    const normed_DN = columns(norm(x_ND, weight('input_layernorm')), D)
    const attention = g.nodes(
      'GroupQueryAttention',
      [
        rotate(rows(project(weight('self_attn.q_proj'), normed_DN), heads * E), heads),
        rotate(rows(project(weight('self_attn.k_proj'), normed_DN), keyValueHeads * E), keyValueHeads),
        rows(project(weight('self_attn.v_proj'), normed_DN), keyValueHeads * E),
        g.input(cache.pastKey, 'float32', cacheShape),
        g.input(cache.pastValue, 'float32', cacheShape),
        lengths,
        total,
      ],
      { num_heads: heads, kv_num_heads: keyValueHeads },
      { domain: 'com.microsoft', outputs: [`attention.${layer}`, cache.presentKey, cache.presentValue] },
    )[0]!
    g.output(cache.presentKey, 'float32', cacheShape)
    g.output(cache.presentValue, 'float32', cacheShape)
    const attended_DN = columns(g.node('Reshape', [attention, g.ints([-1, heads * E])]), heads * E)
    x_ND = g.node('Add', [x_ND, transpose(project(weight('self_attn.o_proj'), attended_DN))])
    const middle_DN = columns(norm(x_ND, weight('post_attention_layernorm')), D)
    const gate_FN = project(weight('mlp.gate_proj'), middle_DN)
    const up_FN = project(weight('mlp.up_proj'), middle_DN)
    const active_FN = g.node('Mul', [g.node('Mul', [gate_FN, g.node('Sigmoid', [gate_FN])]), up_FN])
    x_ND = g.node('Add', [x_ND, transpose(project(weight('mlp.down_proj'), active_FN))])
  }
  const last_BD = norm(g.node('Gather', [x_ND, last], { axis: 0 }), FINAL_NORM)
  const logits = transpose(project(headName(config), columns(last_BD, D)))
  g.output(logits, 'float32', ['B', config.vocabularySize], LOGITS)
  return g.build()
}

/**
 * The whole model as one graph that reads tokens against a key/value cache and gives the logits of what comes
 * next. It serves both to read prompts (rows of many tokens) and to decode (many rows of few tokens). Shape suffixes:
 * B rows, S tokens a row, N = B·S, D hidden size, H query heads of E in K groups of G, V vocabulary, L positions of the
 * cache, M tokens whose logits are wanted.
 *
 * - Matrices are part of the graph, so that they lie as the kernels read them: a new policy is a new session. Vectors
 *   and the embedding, of which few rows are read, are inputs.
 * - The cache is an input only, and the new keys and values are outputs: a cache that came back would be copied at each
 *   token.
 */
import { architectureOf } from '../architectures/architecture.ts'
import type { ModelConfig } from '../architectures/config.ts'
import { GraphBuilder } from '../onnx/graph-builder.ts'
import { EMBEDDING, FINAL_NORM, headName, parameterShapes } from '../weights/parameter-shapes.ts'
import { type Activation, normNode, projectNode, rowsOf, softCapNode, wantedOf } from './activation.ts'
import { layerOperations, sharedOfLayers } from './layer-operations.ts'
import { INPUT, LOGITS } from './names.ts'

/**
 * The model's bytes; inputs and outputs are in names.ts. Matrices, those of `matricesOf`, are to be given when it is loaded.
 * @param products that attention has at least, in all rows: see `fewestRows`
 */
export function decodeGraph(config: ModelConfig, products: number): Uint8Array {
  const { hiddenSize: D, headDim: E, vocabularySize: V } = config
  const g = new GraphBuilder('decode')
  const tokens = g.input(INPUT.tokens, 'int32', ['N'])
  g.input(INPUT.positions, 'int64', ['B', 'S'])
  g.input(INPUT.last, 'int32', ['M'])
  g.input(INPUT.places, 'int64', ['B', config.keyValueHeads, 'S', 3])
  g.input(INPUT.spans, 'int64', [2])
  g.input(INPUT.cosines, 'float32', ['P', E / 2])
  g.input(INPUT.sines, 'float32', ['P', E / 2])
  const matrices = matricesOf(config)
  for (const [name, shape] of parameterShapes(config)) {
    if (name === EMBEDDING || !matrices.has(name)) g.input(name, 'float32', shape)
  }
  const embedded = g.node('Gather', [EMBEDDING, tokens], { axis: 0 })
  const { embeddingScale } = config
  let x: Activation = {
    layout: 'rows',
    value: embeddingScale === undefined ? embedded : g.node('Mul', [embedded, g.float(embeddingScale)]),
    width: D,
  }
  const shared = sharedOfLayers(g, config, products)
  const architecture = architectureOf(config)
  for (let layer = 0; layer < config.layers; layer++) {
    x = architecture.layer(layerOperations(g, config, layer, shared), config, x)
  }
  const last_MD = normNode(g, config, rowsOf(wantedOf(g, x)), FINAL_NORM)
  const logits_MV = projectNode(g, headName(config), matrices.get(headName(config))!, last_MD)
  const { logitSoftCap } = config
  const capped = logitSoftCap === undefined ? logits_MV : softCapNode(g, logits_MV, logitSoftCap)
  g.output(capped, 'float32', ['M', V], LOGITS)
  return g.build()
}

/** Shapes [out, in] of what activations are multiplied with: all matrices, the embedding only where it is the head too. */
export function matricesOf(config: ModelConfig): ReadonlyMap<string, readonly [number, number]> {
  const matrices = new Map<string, readonly [number, number]>()
  for (const [name, [out, inputs]] of parameterShapes(config)) {
    const multiplied = inputs !== undefined && (name !== EMBEDDING || headName(config) === name)
    if (multiplied) matrices.set(name, [out!, inputs])
  }
  return matrices
}

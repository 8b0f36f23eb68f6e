/**
 * A decoder layer as graphs for a device: those of learner/layer-graphs.ts, but that attention looks at all T × T
 * scores at once. A device has threads to spare for the half that the mask discards, and ranges of keys would be
 * copied.
 */
import { architectureOf } from '../architectures/architecture.ts'
import type { ModelConfig } from '../architectures/config.ts'
import { layerParameters } from '../architectures/layer-parameters.ts'
import { gradient } from '../graph/gradient.ts'
import { input } from '../graph/input.ts'
import { keptValues } from '../graph/kept.ts'
import { buildModel } from '../graph/model.ts'
import type { Factors } from '../graph/operations/adapted-linear.ts'
import type { Range } from '../graph/operations/slice.ts'
import type { Value } from '../graph/value.ts'
import type { LayerGraphs } from '../learner/layer-graphs.ts'
import { layerOperations } from '../learner/layer-operations.ts'
import type { Positions } from '../learner/positions.ts'
import { adaptedMatrices, factorNames, layerFactorShapes, loraScale } from '../lora/adapter.ts'
import type { LoraOptions } from '../port.ts'
import { LoweringBuilder } from './lowering-builder.ts'

/** The backward graphs take the running sums `sum.NAME` too; `gradient.NAME` is the sum with the gradient added. */
export type DeviceLayerGraphs = Omit<LayerGraphs, 'adding'>

/** Inputs `x`, `cos`, `sin` [T, headDim/2], `mask` [T, T] and the layer's weights; otherwise as in learner/layer-graphs.ts. */
export function layerGraphs(config: ModelConfig, lora?: LoraOptions): DeviceLayerGraphs {
  const x = input('x', ['B', 'T', config.hiddenSize])
  const weights = inputs(layerParameters(config))
  const positions = wholePositions(config)
  const layer = (adapter?: ReadonlyMap<string, Factors>) =>
    architectureOf(config).layer(layerOperations(config, weights, positions, adapter), config, x)
  const trained = lora ? inputs(layerFactorShapes(config, lora)) : weights
  const y = lora ? layer(factorsOf(config, lora, trained)) : layer()
  const onto = new Map([...trained].map(([name, weight]) => [weight, input(`sum.${name}`, weight.shape)]))
  const [dx, ...slopes] = gradient(y, input('dy', y.shape), [x, ...trained.values()], { onto })
  const gradients = [...trained.keys()].map((name, index) => [`gradient.${name}`, slopes[index]!])
  const outputs = { dx: dx!, ...Object.fromEntries(gradients) }
  const kept = Object.fromEntries(
    keptValues(y, [dx!, ...slopes]).map((value, index) => [`kept.${index}`, value]),
  )
  const build = (name: string, made: Record<string, Value>, given: Record<string, Value> = {}) =>
    buildModel(name, made, given, false, new LoweringBuilder(name))
  return {
    forward: build('layer forward', { y: lora ? layer() : y }),
    training: build('layer forward for training', { y, ...kept }),
    backward: build('layer backward', outputs, kept),
    recomputing: build('layer recomputing backward', outputs),
    kept: new Map(Object.entries(kept).map(([name, { shape }]) => [name, shape])),
  }
}

function wholePositions({ headDim }: ModelConfig): Positions {
  // A range of the whole axis is never cut, so its bounds are not read.
  const end = input('T', [1], 'int64')
  const all: Range = { to: end, of: end, length: 'T' }
  const block = { queries: all, keys: all, mask: input('mask', ['T', 'T']) }
  return {
    cos: input('cos', ['T', headDim / 2]),
    sin: input('sin', ['T', headDim / 2]),
    blocks: [block],
  }
}

function inputs(shapes: ReadonlyMap<string, readonly number[]>): Map<string, Value> {
  return new Map([...shapes].map(([name, shape]) => [name, input(name, shape)]))
}

function factorsOf(
  config: ModelConfig,
  lora: LoraOptions,
  trained: ReadonlyMap<string, Value>,
): Map<string, Factors> {
  const scale = loraScale(lora)
  const factors = [...adaptedMatrices(config, lora).keys()].map(name => {
    const { a, b } = factorNames(name)
    return [name, { a: trained.get(a)!, b: trained.get(b)!, scale }] as const
  })
  return new Map(factors)
}

/** A decoder layer as graphs: forward alone, forward for training, and backward in two ways. */
import { architectureOf } from '../architectures/architecture.ts'
import type { ModelConfig } from '../architectures/config.ts'
import { layerParameters } from '../architectures/layer-parameters.ts'
import { gradient } from '../graph/gradient.ts'
import { input } from '../graph/input.ts'
import { keptValues } from '../graph/kept.ts'
import { buildModel } from '../graph/model.ts'
import type { Factors } from '../graph/operations/adapted-linear.ts'
import { add } from '../graph/operations/add.ts'
import type { Dim, Value } from '../graph/value.ts'
import { adaptedMatrices, factorNames, layerFactorShapes, loraScale } from '../lora/adapter.ts'
import type { LoraOptions } from '../port.ts'
import { layerOperations } from './layer-operations.ts'
import { type Extent, type Positions, positionValues, type Reach } from './positions.ts'

/** In graphs of a tail, `y` and `dy` are [B, R, D]. */
export interface LayerGraphs {
  /** `x` [B, T, D], the inputs of positions.ts and the layer's weights to `y` [B, T, D]. */
  readonly forward: Uint8Array
  /** The same, with what the backward pass needs as further outputs `kept.N`. It takes an adapter's factors too. */
  readonly training: Uint8Array
  /**
   * The inputs of `forward`, `dy` [B, T, D] and the `kept.N` to `dx` and, for each trained weight, `gradient.NAME`.
   */
  readonly backward: Uint8Array
  /** The same without the `kept.N`, which are computed again. */
  readonly recomputing: Uint8Array
  /** For each trained weight, the running sum `sum.NAME` and `gradient.NAME` to `total.NAME`. */
  readonly adding: Uint8Array
  /** Shapes of the `kept.N` by their names. */
  readonly kept: ReadonlyMap<string, readonly Dim[]>
}

/** Shapes of what is trained of a layer: its parameters, or the factors of its adapter. */
export function trainedShapes(
  config: ModelConfig,
  lora?: LoraOptions,
): ReadonlyMap<string, readonly number[]> {
  return lora ? layerFactorShapes(config, lora) : layerParameters(config)
}

export function layerGraphs(
  config: ModelConfig,
  reach: Reach,
  lora?: LoraOptions,
  extent: Extent = 'all',
): LayerGraphs {
  const { trained, forward, training, outputs, kept } = layerValues(
    config,
    positionValues(config, reach, extent),
    lora,
  )
  return {
    forward: buildModel('layer forward', forward, {}, true),
    training: buildModel('layer forward for training', training, {}, true),
    backward: buildModel('layer backward', outputs, kept, true),
    recomputing: buildModel('layer recomputing backward', outputs, {}, true),
    adding: addingGraph(trained),
    kept: shapesOf(kept),
  }
}

type Values = Readonly<Record<string, Value>>

/** What the graphs of a layer are made of. */
export interface LayerValues {
  readonly trained: ReadonlyMap<string, Value>
  /** The outputs of the forward graph, of that for training, and of the backward graphs. */
  readonly forward: Values
  readonly training: Values
  readonly outputs: Values
  readonly kept: Values
}

/** @param adds the gradients are those of this pass added onto the inputs `sum.NAME` */
export function layerValues(
  config: ModelConfig,
  positions: Positions,
  lora?: LoraOptions,
  adds = false,
): LayerValues {
  const x = input('x', ['B', 'T', config.hiddenSize])
  const weights = inputs(layerParameters(config))
  const layer = (adapter?: ReadonlyMap<string, Factors>) =>
    architectureOf(config).layer(layerOperations(config, weights, positions, adapter), config, x)

  const trained = lora ? inputs(layerFactorShapes(config, lora)) : weights
  const y = lora ? layer(factorsOf(config, lora, trained)) : layer()
  const sums = adds ? [...trained] : []
  const onto = new Map(sums.map(([name, weight]) => [weight, input(`sum.${name}`, weight.shape)]))
  const [dx, ...slopes] = gradient(y, input('dy', y.shape), [x, ...trained.values()], { onto })
  const gradients = [...trained.keys()].map((name, index) => [`gradient.${name}`, slopes[index]!])
  const kept = Object.fromEntries(
    keptValues(y, [dx!, ...slopes]).map((value, index) => [`kept.${index}`, value]),
  )
  return {
    trained,
    forward: { y: lora ? layer() : y },
    training: { y, ...kept },
    outputs: { dx: dx!, ...Object.fromEntries(gradients) },
    kept,
  }
}

export function shapesOf(values: Values): ReadonlyMap<string, readonly Dim[]> {
  return new Map(Object.entries(values).map(([name, { shape }]) => [name, shape]))
}

function addingGraph(trained: ReadonlyMap<string, Value>): Uint8Array {
  const totals = [...trained].map(([name, { shape }]) => [
    `total.${name}`,
    add(input(`sum.${name}`, shape), input(`gradient.${name}`, shape)),
  ])
  return buildModel('gradient sums', Object.fromEntries(totals), {}, true)
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

/** A decoder layer as graphs: forward alone, forward for training, and backward in two ways. */
import { architectureOf } from '../architectures/architecture.ts'
import type { ModelConfig } from '../architectures/config.ts'
import { layerParameters } from '../architectures/layer-parameters.ts'
import { gradient } from '../graph/gradient.ts'
import { input } from '../graph/input.ts'
import { keptValues } from '../graph/kept.ts'
import { buildModel } from '../graph/model.ts'
import type { Dim } from '../graph/value.ts'
import { layerOperations } from './layer-operations.ts'
import { positionValues, type Reach } from './positions.ts'

export interface LayerGraphs {
  /** `x` [B, T, D], the inputs of positions.ts and the layer's weights to `y` [B, T, D]. */
  readonly forward: Uint8Array
  /** The same, with what the backward pass needs as further outputs `kept.N`. */
  readonly training: Uint8Array
  /**
   * The inputs of `forward`, `dy` [B, T, D], the `kept.N` and, for each weight, the running sum `sum.NAME`, to
   * `dx` and, for each weight, `gradient.NAME`: the sum with this gradient added.
   */
  readonly backward: Uint8Array
  /** The same without the `kept.N`, which are computed again. */
  readonly recomputing: Uint8Array
  /** Shapes of the `kept.N` by their names. */
  readonly kept: ReadonlyMap<string, readonly Dim[]>
}

export function layerGraphs(config: ModelConfig, reach: Reach): LayerGraphs {
  const x = input('x', ['B', 'T', config.hiddenSize])
  const weights = new Map([...layerParameters(config)].map(([name, shape]) => [name, input(name, shape)]))
  const operations = layerOperations(config, weights, positionValues(config, reach))
  const y = architectureOf(config).layer(operations, config, x)

  const onto = new Map([...weights].map(([name, weight]) => [weight, input(`sum.${name}`, weight.shape)]))
  const [dx, ...slopes] = gradient(y, input('dy', y.shape), [x, ...weights.values()], { onto })
  const gradients = [...weights.keys()].map((name, index) => [`gradient.${name}`, slopes[index]!])
  const outputs = { dx: dx!, ...Object.fromEntries(gradients) }
  const kept = Object.fromEntries(
    keptValues(y, [dx!, ...slopes]).map((value, index) => [`kept.${index}`, value]),
  )
  return {
    forward: buildModel('layer forward', { y }),
    training: buildModel('layer forward for training', { y, ...kept }),
    backward: buildModel('layer backward', outputs, kept),
    recomputing: buildModel('layer recomputing backward', outputs),
    kept: new Map(Object.entries(kept).map(([name, { shape }]) => [name, shape])),
  }
}

/** A decoder layer as two graphs: forward, and backward with the forward pass computed anew. */
import { architectureOf } from '../architectures/architecture.ts'
import type { ModelConfig } from '../architectures/config.ts'
import { gradient } from '../graph/gradient.ts'
import { input } from '../graph/input.ts'
import { buildModel } from '../graph/model.ts'

function layer(config: ModelConfig) {
  const architecture = architectureOf(config)
  const x = input('x', ['B', 'T', config.hiddenSize])
  const weights = new Map(
    [...architecture.layerParameters(config)].map(([name, shape]) => [name, input(name, shape)]),
  )
  const table = ['T', config.headDim / 2]
  const positions = { cos: input('cos', table), sin: input('sin', table), mask: input('mask', ['T', 'T']) }
  return { x, weights, y: architecture.layer(config, x, weights, positions) }
}

/** `x` [B, T, D], `cos`, `sin` [T, headDim/2], `mask` [T, T] and the layer's weights to `y` [B, T, D]. */
export function forwardGraph(config: ModelConfig): Uint8Array {
  return buildModel('layer forward', { y: layer(config).y })
}

/**
 * The inputs of `forwardGraph`, `dy` [B, T, D] and, for each weight, the running sum `sum.NAME`, to `dx` and,
 * for each weight, `gradient.NAME`: the sum with this gradient added.
 */
export function backwardGraph(config: ModelConfig): Uint8Array {
  const { x, weights, y } = layer(config)
  const onto = new Map([...weights].map(([name, weight]) => [weight, input(`sum.${name}`, weight.shape)]))
  const [dx, ...gradients] = gradient(y, input('dy', y.shape), [x, ...weights.values()], { onto })
  const named = [...weights.keys()].map((name, index) => [`gradient.${name}`, gradients[index]!])
  return buildModel('layer backward', { dx: dx!, ...Object.fromEntries(named) })
}

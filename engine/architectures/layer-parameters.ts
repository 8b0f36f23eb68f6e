/** Names and shapes of a layer's parameters: they follow from its operations. */
import { architectureOf } from './architecture.ts'
import type { ModelConfig } from './config.ts'
import type { LayerOperations } from './layer-operations.ts'

/** Shapes by the names behind `model.layers.N.`, in the order the parameters are used. */
export function layerParameters(config: ModelConfig): ReadonlyMap<string, readonly number[]> {
  const shapes = new Map<string, readonly number[]>()
  architectureOf(config).layer(recorder(config, shapes), config, config.hiddenSize)
  return shapes
}

/** Activations are their number of features here. */
function recorder(
  { headDim, heads }: ModelConfig,
  shapes: Map<string, readonly number[]>,
): LayerOperations<number> {
  return {
    norm(width, name) {
      shapes.set(`${name}.weight`, [width])
      return width
    },
    project(from, name, width, bias) {
      shapes.set(`${name}.weight`, [width, from])
      if (bias) shapes.set(`${name}.bias`, [width])
      return width
    },
    headNorm(width, name) {
      shapes.set(`${name}.weight`, [headDim])
      return width
    },
    rotary: width => width,
    attention: () => heads * headDim,
    gated: (_, width) => width,
    add: width => width,
  }
}

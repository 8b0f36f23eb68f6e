/**
 * A decoder layer as graphs for a device: those of learner/layer-graphs.ts, but that attention looks at all T × T
 * scores at once. A device has threads to spare for the half that the mask discards, and ranges of keys would be
 * copied.
 */
import type { ModelConfig } from '../architectures/config.ts'
import { input } from '../graph/input.ts'
import { buildModel } from '../graph/model.ts'
import type { Range } from '../graph/operations/slice.ts'
import type { Value } from '../graph/value.ts'
import { type LayerGraphs, layerValues, shapesOf } from '../learner/layer-graphs.ts'
import type { Positions } from '../learner/positions.ts'
import type { LoraOptions } from '../port.ts'
import { LoweringBuilder } from './lowering-builder.ts'

/** The backward graphs take the running sums `sum.NAME` too; `gradient.NAME` is the sum with the gradient added. */
export type DeviceLayerGraphs = Omit<LayerGraphs, 'adding'>

/** Inputs `x`, `cos`, `sin` [T, headDim/2], `mask` [T, T] and the layer's weights; otherwise as in learner/layer-graphs.ts. */
export function layerGraphs(config: ModelConfig, lora?: LoraOptions): DeviceLayerGraphs {
  const { forward, training, outputs, kept } = layerValues(config, wholePositions(config), lora, true)
  const build = (name: string, made: Readonly<Record<string, Value>>, given: typeof made = {}) =>
    buildModel(name, made, given, false, new LoweringBuilder(name))
  return {
    forward: build('layer forward', forward),
    training: build('layer forward for training', training),
    backward: build('layer backward', outputs, kept),
    recomputing: build('layer recomputing backward', outputs),
    kept: shapesOf(kept),
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

import type { ModelConfig } from '../architectures/config.ts'
import { adaptedMatrices, factorShapes } from '../lora/adapter.ts'
import type { LoraOptions } from '../port.ts'
import { parameterShapes } from '../weights/parameter-shapes.ts'

export interface ParameterCount {
  readonly all: number
  /** What has a gradient and moments: all parameters, or an adapter's factors. */
  readonly trained: number
  /** What a new policy version has of its own: all parameters, or the matrices that an adapter is merged into. */
  readonly changed: number
}

export function parameterCount(config: ModelConfig, lora?: LoraOptions): ParameterCount {
  const all = elements(parameterShapes(config).values())
  if (!lora) return { all, trained: all, changed: all }
  return {
    all,
    trained: elements(factorShapes(config, lora).values()),
    changed: config.layers * elements(adaptedMatrices(config, lora).values()),
  }
}

function elements(shapes: Iterable<readonly number[]>): number {
  let sum = 0
  for (const shape of shapes) sum += shape.reduce((product, length) => product * length, 1)
  return sum
}

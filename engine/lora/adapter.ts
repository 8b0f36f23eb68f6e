/**
 * LoRA (Hu et al., arXiv:2106.09685): a matrix W [O, I] is the frozen W₀ and s · B · A, of which A [r, I] and
 * B [O, r] are learned. Names of factors are PEFT's, behind the name of their matrix.
 */

import { GraspError } from '../../errors/grasp-error.ts'
import type { ModelConfig } from '../architectures/config.ts'
import { layerParameters } from '../architectures/layer-parameters.ts'
import type { LoraOptions } from '../port.ts'
import { layerParameter } from '../weights/parameter-shapes.ts'

/** The target that stands for every projection of a layer; the output head is none. */
export const ALL_LINEAR = 'all-linear'

const WEIGHT = /\.weight$/

export interface FactorNames {
  readonly a: string
  readonly b: string
}

/** @param matrix its name, with or without its layer's */
export function factorNames(matrix: string): FactorNames {
  const stem = matrix.replace(WEIGHT, '')
  return { a: `${stem}.lora_A.weight`, b: `${stem}.lora_B.weight` }
}

/** s: α / r, or α / √r (Kalajdzievski, arXiv:2312.03732). */
export function loraScale({ rank, alpha, rankStabilised }: LoraOptions): number {
  return alpha / (rankStabilised ? Math.sqrt(rank) : rank)
}

/**
 * The matrices of a layer that are adapted: [O, I] by the names behind `model.layers.N.`.
 * @throws GraspError CONFIG_INVALID when the model has no projection of a target's name
 */
export function adaptedMatrices(
  config: ModelConfig,
  { targets }: LoraOptions,
): Map<string, [number, number]> {
  const projections = [...layerParameters(config)].flatMap(([name, shape]) =>
    shape.length === 2 ? [{ name, shape: shape as [number, number], path: name.replace(WEIGHT, '') }] : [],
  )
  const means = (target: string, path: string) =>
    target === ALL_LINEAR || path === target || path.endsWith(`.${target}`)
  for (const target of targets) {
    if (projections.some(({ path }) => means(target, path))) continue
    const known = projections.map(({ path }) => path.slice(path.lastIndexOf('.') + 1))
    throw new GraspError(
      'CONFIG_INVALID',
      `training.lora.targets names '${target}'; a layer of ${config.architecture} has ${known.join(', ')}, ` +
        `and '${ALL_LINEAR}' stands for all of them`,
    )
  }
  const adapted = projections.filter(({ path }) => targets.some(target => means(target, path)))
  return new Map(adapted.map(({ name, shape }) => [name, shape]))
}

/** The names of all matrices that are adapted. */
export function adaptedParameters(config: ModelConfig, lora: LoraOptions): ReadonlySet<string> {
  const names = [...adaptedMatrices(config, lora).keys()]
  const layers = Array.from({ length: config.layers }, (_, layer) => layer)
  return new Set(layers.flatMap(layer => names.map(name => layerParameter(layer, name))))
}

/** Shapes of a layer's factors by the names behind `model.layers.N.`. */
export function layerFactorShapes(config: ModelConfig, lora: LoraOptions): Map<string, readonly number[]> {
  const shapes = new Map<string, readonly number[]>()
  for (const [name, [outputs, inputs]] of adaptedMatrices(config, lora)) {
    const { a, b } = factorNames(name)
    shapes.set(a, [lora.rank, inputs])
    shapes.set(b, [outputs, lora.rank])
  }
  return shapes
}

/** Shapes of all factors. */
export function factorShapes(config: ModelConfig, lora: LoraOptions): Map<string, readonly number[]> {
  const ofLayer = layerFactorShapes(config, lora)
  const shapes = new Map<string, readonly number[]>()
  for (let layer = 0; layer < config.layers; layer++) {
    for (const [name, shape] of ofLayer) shapes.set(layerParameter(layer, name), shape)
  }
  return shapes
}

/** Names and shapes of a model's parameters, as Hugging Face stores them. */
import type { ModelConfig } from '../architectures/config.ts'
import { layerParameters } from '../architectures/layer-parameters.ts'

export const EMBEDDING = 'model.embed_tokens.weight'
export const FINAL_NORM = 'model.norm.weight'
const UNTIED_HEAD = 'lm_head.weight'

export function parameterShapes(config: ModelConfig): Map<string, readonly number[]> {
  const { hiddenSize: D, vocabularySize: V } = config
  const shapes = new Map<string, readonly number[]>([[EMBEDDING, [V, D]]])
  const layerShapes = layerParameters(config)
  for (let layer = 0; layer < config.layers; layer++) {
    for (const [name, shape] of layerShapes) shapes.set(layerParameter(layer, name), shape)
  }
  shapes.set(FINAL_NORM, [D])
  if (!config.tiedHead) shapes.set(UNTIED_HEAD, [V, D])
  return shapes
}

export function layerParameter(layer: number, name: string): string {
  return `model.layers.${layer}.${name}`
}

/** The matrix [V, D] that makes logits of hidden states. */
export function headName(config: ModelConfig): string {
  return config.tiedHead ? EMBEDDING : UNTIED_HEAD
}

/**
 * What the engine needs to know of a model, read from config.json by its architecture. What an architecture does
 * not have is absent: the graphs then lack it too.
 */
import type { RotaryScaling } from './rotary-scaling.ts'

export interface ModelConfig {
  /** `model_type` of config.json. */
  readonly architecture: string
  /** D */
  readonly hiddenSize: number
  /** F */
  readonly intermediateSize: number
  readonly layers: number
  /** H query heads share K key/value heads (H a multiple of K). */
  readonly heads: number
  readonly keyValueHeads: number
  /** E; H · E need not be D. */
  readonly headDim: number
  /** V */
  readonly vocabularySize: number
  readonly contextLength: number
  readonly ropeTheta: number
  readonly ropeScaling?: RotaryScaling
  readonly normEpsilon: number
  /** Added to the weights of norms. */
  readonly normOffset?: number
  /** The output head is the embedding matrix. */
  readonly tiedHead: boolean
  /** Factor of the embeddings, an f32 number. */
  readonly embeddingScale?: number
  /** Factor of the products of queries and keys; 1/√E where absent. */
  readonly attentionScale?: number
  /** Scaled products s become cap · tanh(s / cap). */
  readonly attentionSoftCap?: number
  /** Logits l become cap · tanh(l / cap). */
  readonly logitSoftCap?: number
  readonly slidingWindow?: SlidingWindow
}

export interface SlidingWindow {
  /** A token looks at this many tokens, itself included. */
  readonly tokens: number
  /** Which layers have the window; the others look at everything before. */
  readonly layers: readonly boolean[]
}

/** How many tokens a layer's tokens look at, themselves included; undefined is all. */
export function windowOf({ slidingWindow }: ModelConfig, layer: number): number | undefined {
  return slidingWindow?.layers[layer] ? slidingWindow.tokens : undefined
}

/** Factor of the products of queries and keys. */
export function attentionScaleOf({ attentionScale, headDim }: ModelConfig): number {
  return attentionScale ?? headDim ** -0.5
}

/** What the engine needs to know of a model, read from config.json. */
export interface ModelConfig {
  readonly architecture: 'llama'
  /** D */
  readonly hiddenSize: number
  /** F */
  readonly intermediateSize: number
  readonly layers: number
  /** H query heads share K key/value heads (H a multiple of K). */
  readonly heads: number
  readonly keyValueHeads: number
  readonly headDim: number
  /** V */
  readonly vocabularySize: number
  readonly contextLength: number
  readonly ropeTheta: number
  readonly normEpsilon: number
  /** The output head is the embedding matrix. */
  readonly tiedHead: boolean
}

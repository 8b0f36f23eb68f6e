/** How much a learner takes at a time. */
import type { LoraOptions } from '../port.ts'

export interface LearnerLimits {
  /** Most tokens, padding included, in one pass through the layers. */
  readonly tokensPerPass: number
  /** Most bytes of activations kept from forward to backward pass; 1 GiB by default. */
  readonly activationBytes?: number
  /** Most tokens in one pass through the output head; by default from the vocabulary's size. */
  readonly chunkTokens?: number
  /** Trains an adapter instead of the weights: its factors are then among the weights given to `accumulate`. */
  readonly lora?: LoraOptions | undefined
}

export const ACTIVATION_BYTES = 2 ** 30

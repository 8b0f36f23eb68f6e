import type { Tensor } from 'onnxruntime-node'
import type { Distributions } from '../port.ts'
import type { Weights } from '../weights/weights.ts'

/** A model with the matrix [V, D] that makes logits of its hidden states, and that matrix's hash. */
export interface Side {
  readonly weights: Weights
  readonly head: Tensor
  readonly headHash: string
}

/** A side's part in one response: hidden states [T, D] after the final norm, and numbers a token. */
export interface ScoredSide {
  readonly side: Side
  readonly hidden: Float32Array
  readonly numbers: Pick<Distributions, 'lse' | 'logp'>
}

import type { Held, HeldTensor } from '../backend.ts'
import type { Distributions } from '../port.ts'

/** A model with the matrix [V, D] that makes logits of its hidden states, and that matrix's hash. */
export interface Side {
  readonly weights: Held
  readonly head: HeldTensor
  readonly headHash: string
}

/** A side's part in one response: hidden states [T, D] after the final norm, and numbers a token. */
export interface ScoredSide {
  readonly side: Side
  readonly hidden: Float32Array
  readonly numbers: Pick<Distributions, 'lse' | 'logp'>
}

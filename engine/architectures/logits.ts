/** The output head. */
import { linear } from '../graph/operations/linear.ts'
import { softCap } from '../graph/operations/soft-cap.ts'
import type { Value } from '../graph/value.ts'
import type { ModelConfig } from './config.ts'

/** Hidden states after the final norm [N, D] and the head [V, D] to logits [N, V], soft-capped where the model is. */
export function logitsOf({ logitSoftCap }: ModelConfig, hidden: Value, head: Value): Value {
  const logits = linear(hidden, head)
  return logitSoftCap === undefined ? logits : softCap(logits, logitSoftCap)
}

/** Cross-entropy with observed tokens: −log p_S(v), in nats. */

import { composite } from '../graph/operations/composite.ts'
import { exp } from '../graph/operations/exp.ts'
import { addAt, gatherLast } from '../graph/operations/gather-last.ts'
import { logSoftmax } from '../graph/operations/log-softmax.ts'
import { multiply } from '../graph/operations/multiply.ts'
import { negate } from '../graph/operations/negate.ts'
import type { Value } from '../graph/value.ts'

/**
 * @param logits the student's, [N, V]
 * @param observed token ids, [N, 1] int64
 * @returns [N, 1]; its gradient at the logits is p_S − onehot(observed)
 */
export function crossEntropy(logits: Value, observed: Value): Value {
  const logp = logSoftmax(logits)
  const loss = negate(gatherLast(logp, observed))
  return composite('crossEntropy', [logits], loss, adjoint => [
    addAt(multiply(exp(logp), adjoint), observed, negate(adjoint)),
  ])
}

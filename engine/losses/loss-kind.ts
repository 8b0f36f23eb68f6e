/** The losses that the engine knows, by what they need to know of each token beside the student's logits. */
import type { ModelConfig } from '../architectures/config.ts'
import { logitsOf } from '../architectures/logits.ts'
import { input } from '../graph/input.ts'
import type { Value } from '../graph/value.ts'
import { crossEntropy } from './cross-entropy.ts'
import { forwardKl } from './forward-kl.ts'
import { forwardKlTopK } from './forward-kl-topk.ts'

/** The loss of N tokens [N, 1] from the student's logits [N, V]; makes the inputs it needs. */
export type LossGraph = (logits: Value, config: ModelConfig) => Value

export const LOSS_KINDS = {
  /** Input `observed` [N, 1] int64. */
  'cross-entropy': logits => crossEntropy(logits, input('observed', ['N', 1], 'int64')),
  /** Inputs `teacher.hidden` [N, D] and `teacher.head` [V, D]. */
  'forward-kl/factored': (logits, config) => {
    const hidden = input('teacher.hidden', ['N', config.hiddenSize])
    const head = input('teacher.head', [config.vocabularySize, config.hiddenSize])
    return forwardKl(logits, logitsOf(config, hidden, head))
  },
  /** Input `teacher.logits` [N, V]. */
  'forward-kl/dense': logits => forwardKl(logits, input('teacher.logits', logits.shape)),
  /** Inputs `teacher.logits` [N, k], `teacher.ids` [N, k] int64 and `teacher.lse` [N, 1]. */
  'forward-kl/topk': logits =>
    forwardKlTopK(logits, {
      logits: input('teacher.logits', ['N', 'k']),
      ids: input('teacher.ids', ['N', 'k'], 'int64'),
      lse: input('teacher.lse', ['N', 1]),
    }),
} as const satisfies Record<string, LossGraph>

export type LossKind = keyof typeof LOSS_KINDS

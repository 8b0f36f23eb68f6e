/** Forward Kullback-Leibler divergence KL(p_T ‖ p_S) over the whole vocabulary, in nats. The teacher is a constant. */
import { composite } from '../graph/operations/composite.ts'
import { exp } from '../graph/operations/exp.ts'
import { logSoftmax } from '../graph/operations/log-softmax.ts'
import { maximum } from '../graph/operations/maximum.ts'
import { multiply } from '../graph/operations/multiply.ts'
import { subtract } from '../graph/operations/subtract.ts'
import { sumTo } from '../graph/operations/sum-to.ts'
import type { Value } from '../graph/value.ts'

/**
 * Σ_v p_T(v) · (log p_T(v) − log p_S(v)). Rounding can leave −1e-7 where both sides agree: that is 0.
 *
 * @param student logits [N, V]
 * @param teacher logits [N, V]
 * @returns [N, 1]; its gradient at the student's logits is p_S − p_T
 */
export function forwardKl(student: Value, teacher: Value): Value {
  const logStudent = logSoftmax(student)
  const logTeacher = logSoftmax(teacher)
  const teacherP = exp(logTeacher)
  const terms = multiply(teacherP, subtract(logTeacher, logStudent))
  const kl = maximum(sumTo(terms, [student.shape[0]!, 1]), 0)
  return composite('forwardKl', [student], kl, adjoint => [
    multiply(subtract(exp(logStudent), teacherP), adjoint),
  ])
}

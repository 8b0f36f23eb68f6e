/**
 * Forward KL against a teacher of which only the k greatest logits are known, and the log-sum-exp Z of all.
 *
 * With p_i = exp(l_i − Z) for the known ids i and one bucket for all the others, p_r = 1 − Σ p_i and
 * q_r = Σ of the student's probabilities there:
 *
 *   KL' = Σ_i p_i · (log p_i − log q_i) + p_r · (log p_r − log q_r)
 *
 * This is the KL after merging the other tokens into one, so it is a lower bound of the whole KL (data
 * processing inequality), and equal to it for k = V. Its gradient at the student's logits is q − p, where the
 * teacher's rest is spread as the student's is: p_v = p_r · q_v / q_r.
 */

import { scalar } from '../graph/input.ts'
import { add } from '../graph/operations/add.ts'
import { composite } from '../graph/operations/composite.ts'
import { divide } from '../graph/operations/divide.ts'
import { exp } from '../graph/operations/exp.ts'
import { expandLike } from '../graph/operations/expand-like.ts'
import { flushBelow } from '../graph/operations/flush-below.ts'
import { addAt, gatherLast } from '../graph/operations/gather-last.ts'
import { log } from '../graph/operations/log.ts'
import { logSoftmax } from '../graph/operations/log-softmax.ts'
import { maximum } from '../graph/operations/maximum.ts'
import { multiply } from '../graph/operations/multiply.ts'
import { negate } from '../graph/operations/negate.ts'
import { subtract } from '../graph/operations/subtract.ts'
import { sumTo } from '../graph/operations/sum-to.ts'
import type { Value } from '../graph/value.ts'

/** What is left of 1 after subtracting f32 probabilities is rounding below this. */
const REST_RESOLUTION = 2 ** -20
/** Keeps logarithms finite; far below any probability that counts. */
const TINY = 1e-30

export interface TopTeacher {
  /** The k greatest logits, [N, k]. */
  readonly logits: Value
  /** Their token ids, distinct in each row, [N, k] int64. */
  readonly ids: Value
  /** log-sum-exp of all V logits, [N, 1]. */
  readonly lse: Value
}

/** @param student logits [N, V]; @returns [N, 1] */
export function forwardKlTopK(student: Value, { logits, ids, lse }: TopTeacher): Value {
  const column = [student.shape[0]!, 1]
  const logTeacher = subtract(logits, lse)
  const teacher = exp(logTeacher)
  const teacherRest = flushBelow(subtract(scalar(1), sumTo(teacher, column)), REST_RESOLUTION)

  const logStudent = logSoftmax(student)
  const erased = expandLike(scalar(-1 / TINY), logits)
  const studentRests = exp(addAt(logStudent, ids, erased))
  const studentRest = maximum(sumTo(studentRests, column), TINY)

  const known = sumTo(multiply(teacher, subtract(logTeacher, gatherLast(logStudent, ids))), column)
  const rest = multiply(teacherRest, subtract(log(maximum(teacherRest, TINY)), log(studentRest)))
  const kl = maximum(add(known, rest), 0)
  return composite('forwardKlTopK', [student], kl, adjoint => {
    const spread = multiply(studentRests, divide(teacherRest, studentRest))
    return [multiply(addAt(subtract(exp(logStudent), spread), ids, negate(teacher)), adjoint)]
  })
}

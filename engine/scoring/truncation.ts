/** How far the KL of truncated distributions is from the whole one. */

/** One token's k greatest logits of the teacher, and the student's logits of the same ids. */
export interface TruncatedToken {
  readonly teacherLogits: Float32Array
  readonly teacherLse: number
  readonly studentLogits: Float32Array
  readonly studentLse: number
}

/**
 * Forward KL, nats, with all tokens beyond the teacher's k merged into one: what is learned from `topk` slices
 * (losses/forward-kl-topk.ts).
 */
export function truncatedKl({
  teacherLogits,
  teacherLse,
  studentLogits,
  studentLse,
}: TruncatedToken): number {
  let kl = 0
  let teacherRest = 1
  let studentRest = 1
  for (let i = 0; i < teacherLogits.length; i++) {
    const logTeacher = teacherLogits[i]! - teacherLse
    const logStudent = studentLogits[i]! - studentLse
    const p = Math.exp(logTeacher)
    kl += p * (logTeacher - logStudent)
    teacherRest -= p
    studentRest -= Math.exp(logStudent)
  }
  // f32 logits leave a rest of this size from rounding alone.
  if (teacherRest < 2 ** -20) return Math.max(0, kl)
  return Math.max(0, kl + teacherRest * Math.log(teacherRest / Math.max(studentRest, 1e-30)))
}

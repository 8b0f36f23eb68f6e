import type { JudgedContext } from './context.ts'
import { evaluateSplit, probeKl } from './evaluation.ts'

/** Held-out scores and the KL to the teacher: of the untrained student and the teacher, or of a trained policy. */
export async function measure(
  context: JudgedContext,
  version: number,
  role: 'student' | 'grasp',
): Promise<void> {
  if (context.config.data.test === undefined) return
  const split = 'test'
  // The frozen teacher's weights are the student's version 0, whichever version the student has reached.
  const policy = role === 'student' ? 'teacher' : version
  await evaluateSplit(context, { role, policy, policyVersion: version, split })
  if (role === 'student') {
    await evaluateSplit(context, { role: 'teacher', policy: 'teacher', policyVersion: 0, split })
  }
  await probeKl(context, version)
}

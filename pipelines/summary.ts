import type { Log } from '../bus/port.ts'
import { macroAverage } from '../operators/macro-average.ts'
import type { Evaluation } from '../schemas/types.ts'
import type { StageContext } from './context.ts'
import { countKept, countRecords, recorded } from './judged.ts'
import { deadLetters } from './operate/dead-letters.ts'
import type { FinalPolicy, RunResult } from './result.ts'

/** The result of a finished run, added up from what its log holds. */
export async function summarise(
  context: StageContext,
  policy: FinalPolicy,
  seconds: number,
): Promise<RunResult> {
  const { config, log } = context
  const answers = (role: string, policyVersion: number) =>
    recorded(log, { role, policyVersion, split: 'test' })
  const student = macroAverage((await answers('student', 0)).values())
  const teacher = macroAverage((await answers('teacher', 0)).values())
  const grasp = macroAverage((await answers('grasp', policy.version)).values())
  const measured = student.macro !== null && teacher.macro !== null && grasp.macro !== null
  const before = meanKl((await answers('probe', 0)).values())
  const after = meanKl((await answers('probe', policy.version)).values())
  return {
    run: config.run,
    instances: { seen: await countRecords(log, 'validations'), kept: await countKept(log) },
    scores: measured ? { student: student.macro, teacher: teacher.macro, grasp: grasp.macro } : null,
    categories: measured
      ? Object.fromEntries(
          Object.keys(grasp.categories).map(category => [
            category,
            {
              student: student.categories[category] ?? 0,
              teacher: teacher.categories[category] ?? 0,
              grasp: grasp.categories[category]!,
            },
          ]),
        )
      : null,
    kl: before === null || after === null ? null : { before, after },
    deadLetters: await countDeadLetters(log),
    updates: policy.updates,
    policy: { version: policy.version, path: policy.path, weightsHash: policy.weightsHash },
    seconds,
  }
}

async function countDeadLetters(log: Log): Promise<number> {
  let count = 0
  for await (const { replay } of deadLetters(log)) if (replay === undefined) count += 1
  return count
}

/** Mean over responses of the mean forward KL a token, nats; null when nothing was measured. */
export function meanKl(probes: Iterable<Pick<Evaluation, 'kl'>>): number | null {
  const values = [...probes].flatMap(({ kl }) => kl ?? [])
  return values.length === 0 ? null : values.reduce((sum, kl) => sum + kl, 0) / values.length
}

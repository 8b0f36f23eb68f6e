import type { EvalOptions, Evaluated } from '../../pipelines/eval.ts'
import type { Session } from '../session.ts'
import { table } from '../table.ts'

export async function evalCommand(
  session: Session,
  { policy, split }: { policy: string; split: EvalOptions['split'] },
): Promise<void> {
  const config = await session.config()
  const { parseSelector } = await import('../../pipelines/policies.ts')
  const { evaluatePolicy } = await import('../../pipelines/eval.ts')
  const chosen = policy === 'teacher' ? policy : parseSelector(policy)
  const signal = session.askToStop('stopping')
  session.hooks.progress({ kind: 'phase', name: 'evaluating' })
  const result = await evaluatePolicy(config, { policy: chosen, split }, { ...session.hooks, signal })
  session.result(result, evalSummary(result))
}

function evalSummary({ policy, split, macro, categories, scored, unscored }: Evaluated): string {
  const who =
    policy === 'teacher'
      ? 'the teacher'
      : policy.version === 0
        ? 'the untrained student'
        : `policy ${policy.version}`
  const fixed = (value: number | null) => (value === null ? '–' : value.toFixed(3))
  const rows = Object.entries(categories).map(([name, score]) => [name.replaceAll('_', ' '), fixed(score)])
  const left = unscored > 0 ? `, ${unscored} without a score left out` : ''
  return (
    `${who} on ${scored} ${split} questions${left}\n\n` +
    table([['category', 'score'], ...rows, ['macro average', fixed(macro)]])
  )
}

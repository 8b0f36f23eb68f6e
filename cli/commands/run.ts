import { relative } from 'node:path'
import type { RunResult } from '../../pipelines/result.ts'
import { clock } from '../progress-line.ts'
import type { Session } from '../session.ts'
import { table } from '../table.ts'

export async function run(session: Session): Promise<void> {
  const config = await session.config()
  const { runPipeline } = await import('../../pipelines/run.ts')
  const signal = session.askToStop('stopping after this step and a checkpoint')
  const result = await runPipeline(config, { ...session.hooks, signal })
  session.result(result, runSummary(result))
}

const fixed = (value: number | undefined) => (value === undefined ? '–' : value.toFixed(3))

/** The result of a run as a person reads it. */
export function runSummary(result: RunResult): string {
  const { run: name, instances, scores, categories, kl, updates, policy, seconds } = result
  const share = instances.seen === 0 ? 0 : Math.round((100 * instances.kept) / instances.seen)
  const rows: string[][] = []
  if (scores !== null) {
    rows.push(['held-out score (0 to 1)', 'student', 'teacher', 'GRASP'])
    for (const [category, score] of Object.entries(categories ?? {})) {
      rows.push([
        category.replaceAll('_', ' '),
        fixed(score.student),
        fixed(score.teacher),
        fixed(score.grasp),
      ])
    }
    rows.push(['macro average', fixed(scores.student), fixed(scores.teacher), fixed(scores.grasp)])
  }
  const facts = [
    ['questions kept', `${instances.kept} of ${instances.seen} (${share} %)`],
    ...(kl === null
      ? []
      : [['KL to the teacher', `${fixed(kl.before)} before, ${fixed(kl.after)} after (nats a token)`]]),
    ['policy', `${policy.version}, ${relative(process.cwd(), policy.path) || '.'}`],
    ['weights', policy.weightsHash],
  ]
  const heading = `run ${name}: ${updates} updates in ${clock(seconds)}\n`
  return [heading, ...(rows.length > 0 ? [table(rows)] : []), table([['', ''], ...facts]).trimStart()].join(
    '\n',
  )
}

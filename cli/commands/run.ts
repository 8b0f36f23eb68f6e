import { relative } from 'node:path'
import { GraspError } from '../../errors/grasp-error.ts'
import type { RunResult } from '../../pipelines/result.ts'
import { type StageName, TOPOLOGY } from '../../pipelines/topology.ts'
import { clock } from '../progress-line.ts'
import type { Session } from '../session.ts'
import { table } from '../table.ts'

export async function run(session: Session, _options: unknown, stage?: string): Promise<void> {
  const name = stage === undefined ? undefined : stageNamed(stage)
  const config = await session.config()
  // Read before a Ctrl-C only asks to stop: it also ends the compiler that a checkout reads its sources with.
  const { runPipeline } = await import('../../pipelines/run.ts')
  const { runStageProcess } = await import('../../pipelines/run-one.ts')
  // Only the trainer has one.
  const saves = name === undefined || name === 'training'
  const signal = session.askToStop(`stopping after this step${saves ? ' and a checkpoint' : ''}`)
  const hooks = { ...session.hooks, signal }
  if (name === undefined) {
    const result = await runPipeline(config, hooks)
    session.result(result, runSummary(result))
    return
  }
  const result = await runStageProcess(config, name, hooks)
  const text =
    name === 'evaluation' ? runSummary(result as RunResult) : `stage ${name} of run ${config.run} is done\n`
  session.result({ run: config.run, stage: name, result: result ?? null }, text)
}

/** @throws GraspError CONFIG_INVALID */
function stageNamed(name: string): StageName {
  const names = TOPOLOGY.map(({ stage }) => stage)
  const found = names.find(stage => stage === name)
  if (found !== undefined) return found
  throw new GraspError('CONFIG_INVALID', `there is no stage "${name}"; expected one of ${names.join(', ')}`)
}

const fixed = (value: number | undefined) => (value === undefined ? '–' : value.toFixed(3))

/** The result of a run as a person reads it. */
export function runSummary(result: RunResult): string {
  const { run: name, instances, scores, categories, kl, updates, policy, seconds, deadLetters } = result
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
    ...(deadLetters === 0
      ? []
      : [['could not be processed', `${deadLetters} (\`grasp deadletters list\` tells what and why)`]]),
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

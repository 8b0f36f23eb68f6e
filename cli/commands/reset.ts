import { join } from 'node:path'
import { GraspError } from '../../errors/grasp-error.ts'
import { Checkpoints } from '../../pipelines/checkpoints.ts'
import { openExistingLog } from '../../pipelines/operate/open.ts'
import { applyReset, planReset, type ResetPlan, type ResetTarget } from '../../pipelines/operate/reset.ts'
import { openRunLog } from '../../pipelines/run-log.ts'
import { confirm } from '../confirm.ts'
import type { Session } from '../session.ts'
import { table } from '../table.ts'
import { stageNamed, timeOf } from './arguments.ts'

interface ResetOptions {
  readonly stage: string
  readonly to: string
  readonly partition?: number
  readonly dryRun?: boolean
  readonly yes?: boolean
}

export async function reset(session: Session, options: ResetOptions): Promise<void> {
  const { partition, dryRun = false, yes = false } = options
  const request = { stage: stageNamed(options.stage), to: targetNamed(options.to), partition }
  const config = await session.config()
  const log = dryRun ? await openRunLog(config, { readOnly: true }) : await openExistingLog(config)
  try {
    const plan = await planReset(log, request, new Checkpoints(join(config.output.path, 'checkpoints')))
    const text = describeReset(plan)
    const changes = plan.steps.some(({ committed, target }) => committed !== target)
    if (!dryRun && changes) {
      session.say(text.trimEnd())
      if (!yes) await confirm(`Set ${plan.stage} there?`, session.streams)
      await applyReset(log, plan)
    }
    const applied = !dryRun && changes
    const end = !changes
      ? ''
      : applied
        ? `${plan.stage} is set; \`grasp run\` goes on from there\n`
        : 'Nothing was changed.\n'
    session.result({ run: config.run, applied, ...resetDocument(plan) }, applied ? end : text + end)
  } finally {
    await log.close()
  }
}

function targetNamed(text: string): ResetTarget {
  if (text === 'beginning' || text === 'end') return text
  if (/^\d+$/.test(text)) return { offset: Number(text) }
  if (/^\d{4}-/.test(text)) return { time: timeOf('--to', text) }
  const message = `--to ${text}: expected beginning, end, an offset, or a time such as 2026-01-31T12:00:00Z`
  throw new GraspError('CONFIG_INVALID', message)
}

const iso = (time: number | null) => (time === null ? null : new Date(time).toISOString())

function resetDocument({ steps, reach, ...plan }: ResetPlan): object {
  return {
    ...plan,
    stages: reach.stages,
    steps: steps.map(step => ({ ...step, from: iso(step.from), to: iso(step.to) })),
  }
}

/** What a reset would do, and what that means for the stages after it. */
export function describeReset(plan: ResetPlan): string {
  const { stage, topic, steps, again, skipped, writes, reach, reopens } = plan
  if (steps.every(({ committed, target }) => committed === target))
    return `${stage} stands there already in ${topic}; there is nothing to change\n`
  const rows = steps.map(({ partition, committed, target, again: repeated, skipped: lost, from, to }) => [
    `${topic}/${partition}`,
    String(committed),
    String(target),
    String(repeated),
    String(lost),
    from === null ? '–' : `${iso(from)} to ${iso(to)}`,
  ])
  const lines = [
    table([
      ['partition', 'from offset', 'to', 'again', 'skipped', 'what is read again was written'],
      ...rows,
    ]),
  ]
  if (again > 0) {
    const later = reach.stages.filter(name => name !== stage && name !== 'evaluation')
    lines.push(
      `${stage} would read ${records(again)} of ${topic} once more and write what comes of them to ` +
        `${writes.join(' and ')} once more, beside what is there: the log only grows.\n`,
    )
    if (later.length > 0) {
      lines.push(
        `${later.join(', ')} would take that as new records, and so train on the same questions again.\n`,
      )
    }
  }
  if (skipped > 0) lines.push(`${records(skipped)} of ${topic} would never be processed by ${stage}.\n`)
  if (reopens.length > 0) lines.push(`${reopens.join(', ')}: complete by now; this would open them again.\n`)
  return lines.join('\n')
}

const records = (count: number) => `${count} record${count === 1 ? '' : 's'}`

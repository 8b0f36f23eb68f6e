/** Arguments that name things of the log. Errors: CONFIG_INVALID that says what was expected. */
import { GraspError } from '../../errors/grasp-error.ts'
import { nearest } from '../../pipelines/config/suggest.ts'
import { type StageName, TOPOLOGY } from '../../pipelines/topology.ts'
import { TOPICS, type Topic } from '../../schemas/types.ts'

export function topicNamed(name: string): Topic {
  return oneOf('topic', TOPICS, name)
}

export function stageNamed(name: string): StageName {
  return oneOf(
    'stage',
    TOPOLOGY.map(({ stage }) => stage),
    name,
  )
}

function oneOf<T extends string>(what: string, known: readonly T[], name: string): T {
  if ((known as readonly string[]).includes(name)) return name as T
  const near = nearest(name, known)
  const hint = near ? `did you mean ${near}?` : `${what}s: ${known.join(', ')}`
  throw new GraspError('CONFIG_INVALID', `there is no ${what} '${name}'; ${hint}`)
}

/** Milliseconds since the epoch. A time without a zone is local. */
export function timeOf(option: string, text: string): number {
  const time = /^\d{4}-\d\d/.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(time)) return time
  throw new GraspError('CONFIG_INVALID', `${option} ${text}: expected a time such as 2026-01-31T12:00:00Z`)
}

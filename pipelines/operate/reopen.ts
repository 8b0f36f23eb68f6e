/**
 * Records that come into a finished run. A sealed topic tells its reader to stop at its end, and a stage seals
 * what it writes when it has stopped. So if only the topic that gets the records were open again, the next run
 * would end every later stage before the first of them arrives. All topics downstream are therefore opened too;
 * the next run seals them one after the other, as the first one did.
 */
import type { Log } from '../../bus/port.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import type { StageName } from '../topology.ts'
import { CONSUMERS } from './consumers.ts'

export interface Reach {
  /** Stages that are going to see the records. */
  readonly stages: readonly StageName[]
  /** Topics that get records, directly or through those stages. */
  readonly topics: readonly Topic[]
}

/** The topics among `topics` that are sealed. */
export async function sealedAmong(log: Log, topics: readonly Topic[]): Promise<Topic[]> {
  const sealed = (await log.topics()).filter(info => info.sealed).map(({ topic }) => topic)
  return topics.filter(topic => sealed.includes(topic))
}

/**
 * Errors: GROUP_ACTIVE where a topic is sealed and a stage is at work: it may be waiting for the end of a topic
 * that nobody would seal again while it runs. Where nothing is sealed (a pipeline that never ends) nobody waits.
 */
export async function checkReopen(log: Log, { stages, topics }: Reach, what: string): Promise<Topic[]> {
  const sealed = await sealedAmong(log, topics)
  if (sealed.length === 0) return sealed
  for (const { stage, group } of CONSUMERS) {
    if (group === null || !stages.includes(stage)) continue
    const workers = await log.workers(group)
    if (workers.length === 0) continue
    throw new GraspError(
      'GROUP_ACTIVE',
      `${what} opens ${sealed.join(', ')} again, but ${stage} is at work (${workers.join(', ')}): ` +
        'stop the run first (Ctrl-C loses nothing), then repeat this, then start the run again',
    )
  }
  return sealed
}

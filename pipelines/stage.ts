/** A stage: what it reads, its operator, and the commit of what the operator finished. */
import { type Observable, takeUntil, tap } from 'rxjs'
import type { Committed } from '../bus/commit-in-order.ts'
import { type Flow, openFlow } from '../bus/flow.ts'
import type { Finished } from '../operators/stage.ts'
import type { Topic } from '../schemas/types.ts'
import type { StageContext } from './context.ts'
import type { StageName } from './topology.ts'

export interface StageOptions {
  /** Records that the operator gathers before it finishes any. */
  readonly atLeast?: number
  /** Records of each partition that it must be able to gather. */
  readonly atLeastEach?: number
  /** Start here instead of at the group's committed positions: offset by partition. */
  readonly from?: ReadonlyMap<number, number>
}

/** A stage's two ends at the log, with the credits of the configuration. The group is named after the stage. */
export function openStage<T extends Topic>(
  { config, log }: StageContext,
  stage: StageName,
  topic: T,
  { atLeast = 1, atLeastEach = 0, from }: StageOptions = {},
): Flow<T> {
  const credits = { ...config.credits, atLeast, atLeastEach }
  return openFlow(log, topic, { stage, group: stage, credits, until: 'sealed', ...(from && { from }) })
}

export interface RunStageOptions<T extends Topic> extends StageOptions {
  /** The stage's operator, over the records of its topic or over all that was delivered. */
  readonly work: (flow: Flow<T>) => Observable<Finished>
  /** Topics that end when this stage has consumed all of a sealed input. */
  readonly seals: readonly Topic[]
}

/**
 * Runs a stage until its topic is sealed and consumed, or until the run is to stop: then what the operator is at
 * is abandoned, uncommitted, and done again by the next run.
 */
export function runStage<T extends Topic>(
  context: StageContext,
  stage: StageName,
  topic: T,
  options: RunStageOptions<T>,
): Observable<Committed> {
  const flow = openStage(context, stage, topic, options)
  const counts = { seen: 0, written: 0, deadletters: 0 }
  return options.work(flow).pipe(
    flow.commit({ seal: options.seals }),
    takeUntil(context.stop$),
    tap(committed => {
      add(counts, committed)
      context.progress({ kind: 'stage', stage, ...counts })
      context.logger.debug({ stage, ...counts }, 'committed')
    }),
  )
}

function add(counts: { seen: number; written: number; deadletters: number }, { finished }: Committed): void {
  for (const { consumed, outputs } of finished) {
    const dead = outputs.filter(({ topic }) => topic === 'deadletters').length
    counts.seen += consumed.length
    counts.written += outputs.length - dead
    counts.deadletters += dead
  }
}

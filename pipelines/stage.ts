/** A stage: what it reads, its operator, and the commit of what the operator finished. */
import {
  defer,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
  retry,
  takeUntil,
  tap,
  throwError,
} from 'rxjs'
import type { Committed } from '../bus/commit-in-order.ts'
import { type Flow, openFlow } from '../bus/flow.ts'
import { GraspError } from '../errors/grasp-error.ts'
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
  /**
   * The stage's operator, over the records of its topic or over all that was delivered. Asked again, for one with
   * nothing in memory, each time that the stage starts again.
   */
  readonly work: (flow: Flow<T>) => Observable<Finished>
  /** Topics that end when this stage has consumed all of a sealed input. */
  readonly seals: readonly Topic[]
}

/**
 * Runs a stage until its topic is sealed and consumed, or until the run is to stop: then what the operator is at
 * is abandoned, uncommitted, and done again by the next run. It starts again by itself when partitions went to
 * another process in the middle of a batch.
 */
export function runStage<T extends Topic>(
  context: StageContext,
  stage: StageName,
  topic: T,
  options: RunStageOptions<T>,
): Observable<Committed> {
  const counts = { seen: 0, written: 0, deadletters: 0 }
  const once$ = defer(() => {
    const flow = openStage(context, stage, topic, options)
    return options.work(flow).pipe(flow.commit({ seal: options.seals }))
  })
  return once$.pipe(
    startingAgain(context, stage),
    takeUntil(context.stop$),
    tap(committed => {
      add(counts, committed)
      context.progress({ kind: 'stage', stage, ...counts })
      context.logger.debug({ stage, ...counts }, 'committed')
    }),
  )
}

/**
 * A batch over several partitions of which one went elsewhere can be neither committed nor finished elsewhere as it
 * is. What it had of the other partitions is delivered again from the committed positions, as all that is in flight.
 */
function startingAgain<T>({ logger }: StageContext, stage: StageName): MonoTypeOperatorFunction<T> {
  return retry({
    delay: (error: unknown) => {
      if (!(error instanceof GraspError) || error.code !== 'PARTITION_LOST') return throwError(() => error)
      logger.info({ stage, reason: error.message }, 'starts again from the committed positions')
      return of(undefined)
    },
  })
}

function add(counts: { seen: number; written: number; deadletters: number }, { finished }: Committed): void {
  for (const { consumed, outputs } of finished) {
    const dead = outputs.filter(({ topic }) => topic === 'deadletters').length
    counts.seen += consumed.length
    counts.written += outputs.length - dead
    counts.deadletters += dead
  }
}

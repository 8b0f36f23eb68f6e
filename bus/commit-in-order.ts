import { Observable, type OperatorFunction, Subscription } from 'rxjs'
import { GraspError } from '../errors/grasp-error.ts'
import type { Topic } from '../schemas/types.ts'
import type { Finished, InFlight, Ready } from './in-flight.ts'
import type { Log, Origin, Output, Place, Position } from './port.ts'

/** One commit, as it went in. */
export interface Committed {
  readonly positions: readonly Position[]
  readonly finished: readonly Finished[]
  /** Where the outputs went, in the order of `finished`. */
  readonly places: readonly Place[]
}

export interface CommitInOrderOptions {
  readonly log: Log
  readonly group: string
  readonly stage: string
  readonly inFlight: InFlight
  /** Whether reading came to its own end, so that nothing more can follow. */
  readonly exhausted: () => boolean
  /** Sealed after the last commit, when reading came to its own end. */
  readonly seal: readonly Topic[]
  /** Gets the function to call when something was finished other than by the source. */
  readonly connect: (nudge: () => void) => void
}

/**
 * Commits what a stage finished, in the order of the deliveries: outputs wait until everything delivered
 * before them in their partition is finished too. One commit runs at a time and the next takes all that got
 * ready meanwhile. Emits every commit, completes after the last one.
 *
 * An error of the source is passed on after what was ready is committed. Errors: STAGE_FAILED when the source
 * completes although deliveries are unfinished (unless reading was cut short), and those of `Log.commit`.
 */
export function commitInOrder(options: CommitInOrderOptions): OperatorFunction<Finished, Committed> {
  const { log, group, stage, inFlight, exhausted, seal, connect } = options
  return source =>
    new Observable(subscriber => {
      let nudged = false
      let committing = false
      let end: { readonly error?: unknown } | undefined

      const nudge = () => {
        if (nudged || committing) return
        nudged = true
        // What finishes in the same turn goes into the same commit.
        queueMicrotask(() => {
          nudged = false
          advance().catch(error => subscriber.error(error))
        })
      }

      const advance = async (): Promise<void> => {
        if (committing || subscriber.closed) return
        committing = true
        for (let ready = inFlight.take(); ready && !subscriber.closed; ready = inFlight.take()) {
          const committed = await commit(ready)
          if (committed) subscriber.next(committed)
        }
        if (end) await close(end)
        committing = false
      }

      const commit = async (ready: Ready): Promise<Committed | undefined> => {
        const { positions, finished, firsts } = ready
        if (positions.length === 0) return undefined
        const outputs: Output[] = []
        const origins: Origin[] = []
        for (let i = 0; i < finished.length; i++) {
          const { topic, partition, offset } = firsts[i]!
          const made = finished[i]!.outputs
          for (let index = 0; index < made.length; index++) {
            outputs.push(made[index]!)
            origins.push({ topic, partition, offset, index })
          }
        }
        try {
          const places = await log.commit({ group, outputs, origins, positions })
          return { positions, finished, places }
        } catch (error) {
          // A partition went to another member meanwhile: the others' work is still good.
          const isLost = error instanceof GraspError && error.code === 'PARTITION_LOST'
          const rest = isLost ? inFlight.without(ready) : undefined
          if (!rest) throw error
          return commit(rest)
        }
      }

      const close = async (how: { readonly error?: unknown }): Promise<void> => {
        if ('error' in how) throw how.error
        if (exhausted()) {
          const [first, ...others] = inFlight.unfinished()
          if (first) throw leftBehind(stage, first, others.length)
          if (seal.length > 0) await log.commit({ group, outputs: [], positions: [], seal })
        }
        subscriber.complete()
      }

      connect(nudge)
      const finish = (how: { readonly error?: unknown }) => {
        end = how
        nudge()
      }
      const working = new Subscription()
      const observer = {
        next: (finished: Finished) => {
          try {
            inFlight.finish(finished)
          } catch (error) {
            // Not before the commit under way is settled: whoever subscribes again goes on from there.
            finish({ error })
            working.unsubscribe()
            return
          }
          nudge()
        },
        error: (error: unknown) => finish({ error }),
        complete: () => finish({}),
      }
      working.add(source.subscribe(observer))
      return working
    })
}

function leftBehind(stage: string, { topic, partition, offset }: Place, others: number): GraspError {
  const more = others > 0 ? ` and ${others} more` : ''
  return new GraspError(
    'STAGE_FAILED',
    `stage ${stage} ended without finishing ${topic}/${partition} offset ${offset}${more}: ` +
      'they are delivered again on the next run',
  )
}

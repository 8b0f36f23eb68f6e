/**
 * A stage's two ends at the log, tied together: what it reads, and the commit of what it finished.
 *
 *     const flow = openFlow(log, 'questions', { stage: 'retrieval', group: 'retrieval', credits, until: 'sealed' })
 *     flow.records$.pipe(retrieve(options), flow.commit({ seal: ['contexts'] })).subscribe(…)
 */
import { filter, type Observable, type OperatorFunction, Subject, tap } from 'rxjs'
import { GraspError } from '../errors/grasp-error.ts'
import type { Topic } from '../schemas/types.ts'
import { type Committed, commitInOrder } from './commit-in-order.ts'
import { deadLetter } from './dead-letter.ts'
import { type Finished, InFlight } from './in-flight.ts'
import type { Delivery, Log, LogRecord, Place, ReadOptions } from './port.ts'

export interface FlowOptions extends Omit<ReadOptions, 'released$' | 'onLost'> {
  /** The stage's name in dead letters and errors. */
  readonly stage: string
}

/** Subscribe to one of the two streams, once. */
export interface Flow<T extends Topic> {
  /** Every record, also those that cannot be decoded. A stage that commits by itself needs no `commit`. */
  readonly deliveries$: Observable<Delivery<T>>

  /** The records that can be decoded; the others become dead letters, which `commit` commits in their turn. */
  readonly records$: Observable<LogRecord<T>>

  /** Gives back the credits of records that the stage no longer holds, though it cannot finish them yet. */
  release(places: readonly Place[]): void

  /**
   * Commits what the stage finished, in order (see `commitInOrder`). `seal` names topics to be sealed once
   * reading has come to its own end and everything is committed.
   */
  commit(options?: { readonly seal?: readonly Topic[] }): OperatorFunction<Finished, Committed>
}

export function openFlow<T extends Topic>(log: Log, topic: T, options: FlowOptions): Flow<T> {
  const { stage, group } = options
  const inFlight = new InFlight()
  const released$ = new Subject<readonly Place[]>()
  // A stage that commits by itself never asks for `commit`, and nothing would ever leave the tracker.
  let tracking = false
  let exhausted = false
  let nudge = () => {}

  const onLost = (partitions: readonly number[]) => {
    if (!tracking) throw lostWhole(topic, group, partitions)
    inFlight.abandon(partitions)
  }
  const deliveries$ = log.read(topic, { ...options, released$, onLost }).pipe(
    tap({
      next: delivery => {
        if (tracking) inFlight.deliver(delivery)
      },
      complete: () => {
        exhausted = true
      },
    }),
  )
  const decoded = (delivery: Delivery<T>): delivery is Extract<Delivery<T>, LogRecord<T>> => {
    if (delivery.error === undefined) return true
    const outputs = [deadLetter(delivery, { stage, error: delivery.error })]
    inFlight.finish({ consumed: [delivery], outputs })
    // The stage never sees it, so it must not count towards what the stage gathers.
    released$.next([delivery])
    nudge()
    return false
  }
  return {
    deliveries$,
    records$: deliveries$.pipe(filter(decoded)),
    release: places => released$.next(places),
    commit: ({ seal = [] } = {}) => {
      tracking = true
      const connect = (wake: () => void) => {
        nudge = wake
      }
      return commitInOrder({ log, group, stage, inFlight, exhausted: () => exhausted, seal, connect })
    },
  }
}

/** A stage that commits by itself cannot let go of a part of its work. */
function lostWhole(topic: Topic, group: string, partitions: readonly number[]): GraspError {
  const which = partitions.map(partition => `${topic}/${partition}`).join(', ')
  return new GraspError(
    'PARTITION_LOST',
    `${which} went to another process that works as group ${group}, or to this one again after it was away for too ` +
      'long; stop the other one, if there is one: the same command goes on',
  )
}

/**
 * Evaluation keeps no position and so shares nothing with a second process of it: both would ask for the same
 * answers, of which one of each counts. So whoever evaluates is a member of its group, which `grasp lag` shows, and
 * a second process waits: it takes over when the first one ends or dies.
 */
import { setTimeout } from 'node:timers/promises'
import { Subject } from 'rxjs'
import type { Log, Place } from '../bus/port.ts'
import type { StageContext } from './context.ts'

const GROUP = 'evaluation'

/** How often it is looked whether the other one is gone, milliseconds. */
const POLL_MS = 500

/**
 * Resolves when no other process evaluates, or when the run is to stop; gives what ends the turn. Two that begin in
 * the same moment may not see each other: then some answers are asked for twice.
 */
export async function evaluationTurn({
  log,
  logger,
  stopped,
}: Pick<StageContext, 'log' | 'logger' | 'stopped'>): Promise<Disposable> {
  let told = false
  for (;;) {
    const others = await log.workers(GROUP)
    if (others.length === 0 || stopped()) break
    if (!told)
      logger.warn(`evaluation is at work already (${others.join(', ')}); this one waits until it ends`)
    told = true
    await setTimeout(POLL_MS)
  }
  return member(log)
}

/** Reads nothing: `contexts` is complete by now, and what comes when it is opened again is let go at once. */
async function member(log: Log): Promise<Disposable> {
  const { ends } = (await log.topics()).find(({ topic }) => topic === 'contexts')!
  const released$ = new Subject<readonly Place[]>()
  const reading = log
    .read('contexts', {
      group: GROUP,
      credits: { records: 1, bytes: 1 },
      from: new Map(ends.entries()),
      until: 'never',
      released$,
    })
    .subscribe({
      next: delivery => released$.next([delivery]),
      // Whatever is wrong with the log, the evaluation itself meets too.
      error: () => {},
    })
  return { [Symbol.dispose]: () => reading.unsubscribe() }
}

/**
 * Stages that only one process may do at a time, whatever the partitions: filtering numbers the batches, training has
 * the weights, and evaluation keeps no position that it could share. A second process of such a stage waits, and goes
 * on from the log when the first one ends or dies.
 *
 * Whoever has the turn is a member of a group of its own. Of two that join in the same moment each sees the other,
 * both leave, and they try again after times of their own.
 */
import { setTimeout } from 'node:timers/promises'
import { Subject } from 'rxjs'
import type { Log, Place } from '../bus/port.ts'
import type { StageContext } from './context.ts'
import type { StageName } from './topology.ts'

type LoneStage = Extract<StageName, 'filtering' | 'training' | 'evaluation'>

/** How often it is looked whether the other one is gone, milliseconds. */
const POLL_MS = 500

const NO_TURN: Disposable = { [Symbol.dispose]: () => {} }

/** The group of who has the turn. Evaluation has no other group, so there it is the stage's. */
function turnGroup(stage: LoneStage): string {
  return stage === 'evaluation' ? stage : `${stage}-turn`
}

/** Resolves when this process has the turn, or is to stop; gives what ends it. */
export async function takeTurn(
  { config, log, logger, stopped }: Pick<StageContext, 'config' | 'log' | 'logger' | 'stopped'>,
  stage: LoneStage,
): Promise<Disposable> {
  // The embedded log refuses what a second process of a stage would commit.
  if (config.log.kind === 'embedded' && stage !== 'evaluation') return NO_TURN
  const group = turnGroup(stage)
  let told = false
  while (!stopped()) {
    const others = await log.workers(group)
    if (others.length === 0) {
      const membership = await join(log, group)
      if ((await log.workers(group)).length <= 1) return membership
      membership[Symbol.dispose]()
    } else if (!told) {
      logger.warn(`${stage} is at work already (${others.join(', ')}); this one waits until it ends`)
      told = true
    }
    await setTimeout(POLL_MS * (1 + Math.random()))
  }
  return NO_TURN
}

/** Reads `policies`, which has few and small records, from its end on, and holds nothing of it. */
async function join(log: Log, group: string): Promise<Disposable> {
  const { ends } = (await log.topics()).find(({ topic }) => topic === 'policies')!
  const released$ = new Subject<readonly Place[]>()
  let leave = () => {}
  await new Promise<void>((resolve, reject) => {
    const reading = log
      .read('policies', {
        group,
        credits: { records: 1, bytes: 1 },
        from: new Map(ends.entries()),
        until: 'never',
        released$,
        onJoined: resolve,
      })
      // An error that comes later is one of the log, which the stage meets too.
      .subscribe({ next: delivery => released$.next([delivery]), error: reject })
    leave = () => reading.unsubscribe()
  })
  return { [Symbol.dispose]: leave }
}

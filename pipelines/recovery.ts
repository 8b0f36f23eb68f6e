/**
 * The engine's process may die under a command, by a fault in native code, for want of memory or by hanging. What it
 * held is gone, but nothing that counts: a stage's work is in the log or was never committed, the trainer's weights
 * are in its checkpoint. So the command takes down all that it opened and does what the next call of it would do, which
 * goes on from there with the same bits.
 */
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { firstFailure } from '../errors/first-failure.ts'
import { GraspError } from '../errors/grasp-error.ts'
import { makeNamedFolder } from '../errors/make-folder.ts'
import type { Config } from './config/config.ts'
import { EngineDeaths } from './engine-deaths.ts'
import type { RunHooks } from './events.ts'

/**
 * Does the work, from the beginning again each time that the engine's process dies; the work opens what it needs, and
 * has closed it when it ends. Errors: those of the work; ENGINE_DIED after one death too many (`engine.restarts`);
 * INTERRUPTED where the command is to stop meanwhile.
 */
export async function recovering<T>(
  config: Config,
  hooks: RunHooks,
  work: (hooks: RunHooks) => Promise<T>,
): Promise<T> {
  const { logger, signal } = hooks
  const deaths = new EngineDeaths(config.engine.restarts)
  for (let total = 1; ; total++) {
    let over = false
    const progress: RunHooks['progress'] = event => {
      // What is still under way of work that has ended is no news.
      if (over) return
      deaths.noteProgress(event)
      hooks.progress(event)
    }
    try {
      // Who is at work already waits for brokers longer than who starts.
      return await work({ ...hooks, progress, ...(total > 1 && { patience: config.log.timeouts.away }) })
    } catch (thrown) {
      const error = firstFailure(thrown)
      if (!(error instanceof GraspError) || error.code !== 'ENGINE_DIED') throw thrown
      over = true
      await record(config, error, total)
      if (signal.aborted) throw stoppedAt(config, error)
      const { number, waitSeconds } = deaths.note(error)
      logger.warn(
        `${error.message}. The engine starts anew in ${waitSeconds} s, from what the log and the last checkpoint have ` +
          `(death ${number} of the ${config.engine.restarts} that engine.restarts allows)`,
      )
      hooks.progress({ kind: 'recovery', deaths: total })
      await pause(waitSeconds, signal)
      if (signal.aborted) throw stoppedAt(config, error)
    }
  }
}

/** Beside the metrics of the updates, where whoever watches a run looks. */
async function record({ output }: Config, { message }: GraspError, deaths: number): Promise<void> {
  makeNamedFolder('output.path', output.path)
  const event = {
    event: 'engine-died',
    time: new Date().toISOString(),
    process: process.pid,
    deaths,
    cause: message,
  }
  await appendFile(join(output.path, 'metrics.jsonl'), `${JSON.stringify(event)}\n`)
}

/** Until the time is over or the command is to stop. */
async function pause(seconds: number, signal: AbortSignal): Promise<void> {
  await setTimeout(seconds * 1000, undefined, { signal }).catch((error: Error) => {
    if (error.name !== 'AbortError') throw error
  })
}

function stoppedAt({ run }: Config, cause: GraspError): GraspError {
  const message = `run "${run}" was stopped after its engine died (${cause.message}); the same command goes on with it`
  return new GraspError('INTERRUPTED', message, { cause })
}

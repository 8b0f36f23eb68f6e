import { basename, dirname, join } from 'node:path'
import { type Log, output } from '../bus/port.ts'
import type { Policy } from '../schemas/types.ts'
import { Checkpoints } from './checkpoints.ts'
import type { ModelContext } from './context.ts'

/** The folder in `output.path`. */
const FOLDER = 'policies'

/** Whether a record is of what was published, and not of the trainer's own checkpoint. */
export function isPublished({ path }: Pick<Policy, 'path'>): boolean {
  return /^https?:\/\//.test(path) || basename(dirname(path)) === FOLDER
}

/**
 * Makes each policy version available to the processes that sample and score: its weights as a Hugging Face
 * directory, and a record in `policies` that names it. Older ones go once no batch in flight can need them.
 */
export function publisher({ config, engine, info, log }: ModelContext): (version: number) => Promise<void> {
  const published = new Checkpoints(join(config.output.path, FOLDER))
  let recorded: Map<number, Policy> | undefined
  return async version => {
    if (version === 0) return
    recorded ??= await publishedBefore(log)
    const path = published.path(version)
    // A process that died after it published goes on from an earlier checkpoint and makes the version again. So it need
    // not survive a power cut, and the disk need not be waited for at each update; readers check the weights hash.
    await engine.exportPolicy(version, path, 'f32', { replace: true, durable: false })
    const { url } = config.output
    const value = {
      version,
      path: url === undefined ? path : `${url.replace(/\/$/, '')}/${published.name(version)}`,
      weightsHash: await engine.weightsHash(version),
      tokenizer: info.tokenizerHash,
      score: null,
      best: false,
    }
    const before = recorded.get(version)
    if (before?.path !== value.path || before.weightsHash !== value.weightsHash) {
      // Of one key, a compacted topic would keep this or the checkpoint's record, which knows whether it is the best.
      await log.append([output('policies', `published ${version}`, value)])
    }
    const oldest = version - config.rollout.lag - 1
    await published.prune((await published.versions()).filter(kept => kept >= oldest))
  }
}

/** By version, the newest record of each. */
async function publishedBefore(log: Log): Promise<Map<number, Policy>> {
  const found = new Map<number, Policy>()
  for await (const { value } of log.scan('policies')) {
    if (value !== undefined && isPublished(value)) found.set(value.version, value)
  }
  return found
}

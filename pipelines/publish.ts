import { join } from 'node:path'
import { output } from '../bus/port.ts'
import { Checkpoints } from './checkpoints.ts'
import type { ModelContext } from './context.ts'

/**
 * Makes each policy version available to the processes that sample and score: its weights as a Hugging Face
 * directory, and a record in `policies` that names it. Older ones go once no batch in flight can need them.
 */
export function publisher({ config, engine, info, log }: ModelContext): (version: number) => Promise<void> {
  const folder = join(config.output.path, 'policies')
  const published = new Checkpoints(folder)
  return async version => {
    if (version === 0) return
    const path = published.path(version)
    // A process that died after it published goes on from an earlier checkpoint and makes the version again.
    await engine.exportPolicy(version, path, 'f32', { replace: true })
    const { url } = config.output
    const value = {
      version,
      path: url === undefined ? path : `${url.replace(/\/$/, '')}/${published.name(version)}`,
      weightsHash: await engine.weightsHash(version),
      tokenizer: info.tokenizerHash,
      score: null,
      best: false,
    }
    await log.append([output('policies', String(version), value)])
    const oldest = version - config.rollout.lag - 1
    await published.prune((await published.versions()).filter(kept => kept >= oldest))
  }
}

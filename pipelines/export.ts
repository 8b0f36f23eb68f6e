/** A policy as a Hugging Face directory of its own, without optimiser state. */
import { readdir } from 'node:fs/promises'
import { GraspError } from '../errors/grasp-error.ts'
import { makeNamedFolder } from '../errors/make-folder.ts'
import type { Config } from './config/config.ts'
import { choosePolicy, type PolicySelector } from './policies.ts'
import { openEngine } from './resources.ts'

export interface Exported {
  readonly version: number
  readonly path: string
  readonly dtype: 'f32' | 'bf16'
  /** Of the policy in f32; with `bf16` the written weights are rounded. */
  readonly weightsHash: string
}

export async function exportPolicy(
  config: Config,
  { policy, path, dtype }: { policy: PolicySelector; path: string; dtype: 'f32' | 'bf16' },
): Promise<Exported> {
  const there = await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new GraspError('CONFIG_INVALID', `${path}: expected a new or empty folder, but ${error.message}`, {
      cause: error,
    })
  })
  if (there.length > 0) {
    throw new GraspError(
      'CONFIG_INVALID',
      `${path}: is not empty; name a new folder, so that nothing is overwritten`,
    )
  }
  const chosen = await choosePolicy(config, policy)
  // Before the model is loaded, which takes its time.
  makeNamedFolder('export', path)
  const engine = await openEngine({ ...config, model: { ...config.model, path: chosen.path } })
  try {
    await engine.exportPolicy('teacher', path, dtype)
    return { version: chosen.version, path, dtype, weightsHash: await engine.weightsHash('teacher') }
  } finally {
    await engine.close()
  }
}

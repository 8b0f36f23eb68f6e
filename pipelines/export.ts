/** A policy as a Hugging Face directory of its own, without optimiser state, or the adapter that it is made by. */
import { readdir } from 'node:fs/promises'
import { readAdapter } from '../engine/checkpoint/checkpoint.ts'
import { writeAdapter } from '../engine/lora/write-adapter.ts'
import { notWritten, replaceFolder } from '../engine/weights/durable.ts'
import { GraspError } from '../errors/grasp-error.ts'
import { makeNamedFolder, removeEmpty } from '../errors/make-folder.ts'
import type { Config } from './config/config.ts'
import { type ChosenPolicy, choosePolicy, openPolicy, type PolicySelector } from './policies.ts'

export interface Exported {
  readonly version: number
  readonly path: string
  readonly dtype: 'f32' | 'bf16'
  /** Of the policy in f32, an adapter merged into it; with `bf16` the written weights are rounded. */
  readonly weightsHash: string
}

export interface ExportOptions {
  readonly policy: PolicySelector
  readonly path: string
  readonly dtype: 'f32' | 'bf16'
  /** Only the adapter, in PEFT's format; the run must have trained one. */
  readonly adapter?: boolean
}

export async function exportPolicy(
  config: Config,
  { policy, path, dtype, adapter = false }: ExportOptions,
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
  const made = makeNamedFolder('export', path)
  try {
    return await (adapter ? exportAdapter : exportModel)(config, chosen, path, dtype)
  } catch (error) {
    removeEmpty(made)
    throw error
  }
}

async function exportModel(
  config: Config,
  chosen: ChosenPolicy,
  path: string,
  dtype: 'f32' | 'bf16',
): Promise<Exported> {
  const engine = await openPolicy(config, chosen)
  try {
    await engine.exportPolicy('teacher', path, dtype)
    return { version: chosen.version, path, dtype, weightsHash: await engine.weightsHash('teacher') }
  } finally {
    await engine.close()
  }
}

async function exportAdapter(
  { model }: Config,
  { version, path: checkpoint, weightsHash }: ChosenPolicy,
  path: string,
  dtype: 'f32' | 'bf16',
): Promise<Exported> {
  const trained = version === 0 ? undefined : await readAdapter(checkpoint)
  if (trained === undefined) {
    const why = version === 0 ? 'is the untrained model' : 'was trained without training.lora'
    throw new GraspError('CONFIG_INVALID', `--adapter: policy ${version} ${why}; leave the option out`)
  }
  try {
    await replaceFolder(path, undefined, folder =>
      writeAdapter(folder, trained.adapter, trained.lora, model.path, dtype),
    )
  } catch (cause) {
    throw notWritten(path, cause)
  }
  // Version 0 has no hash of its own, and was refused.
  return { version, path, dtype, weightsHash: weightsHash! }
}

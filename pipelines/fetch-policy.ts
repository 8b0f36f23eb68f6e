/** A published policy is a folder that this machine sees, or a URL under which the trainer's folder is served. */
import { createWriteStream } from 'node:fs'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import { describeError, GraspError } from '../errors/grasp-error.ts'

/** What the engine needs of a policy beside its weights; its tokenizer is the backbone's. */
const FILES = ['config.json', 'tokenizer.json'] as const
const WEIGHTS = 'model.safetensors'
/** Names the files of weights that are too large for one. */
const INDEX = 'model.safetensors.index.json'
const TIMEOUT_MS = 600_000

const indexSchema = z.looseObject({
  weight_map: z.record(z.string(), z.string().regex(/^[\w-][\w.-]*\.safetensors$/)),
})

/**
 * Returns a local folder with the policy; the engine checks its weights hash. Throws CHECKPOINT_INVALID, also where the
 * signal breaks it off.
 */
export async function fetchPolicy(
  path: string,
  cache: string,
  version: number,
  signal?: AbortSignal,
): Promise<string> {
  if (!/^https?:\/\//.test(path)) return path
  const folder = join(cache, `v${String(version).padStart(6, '0')}`)
  const partial = `${folder}.partial`
  await rm(partial, { recursive: true, force: true })
  await mkdir(partial, { recursive: true })
  const source = path.replace(/\/$/, '')
  try {
    for (const file of FILES) await download(source, file, partial, signal)
    if (!(await downloadIfThere(source, WEIGHTS, partial, signal))) {
      await download(source, INDEX, partial, signal)
      const index = indexSchema.parse(JSON.parse(await readFile(join(partial, INDEX), 'utf8')))
      for (const shard of new Set(Object.values(index.weight_map)))
        await download(source, shard, partial, signal)
    }
  } catch (cause) {
    const message = `policy ${version} cannot be fetched from ${source}: ${describeError(cause)}; is output.url right?`
    throw new GraspError('CHECKPOINT_INVALID', message, { cause })
  }
  await rm(folder, { recursive: true, force: true })
  await rename(partial, folder)
  return folder
}

async function download(source: string, file: string, folder: string, signal?: AbortSignal): Promise<void> {
  if (!(await downloadIfThere(source, file, folder, signal)))
    throw new Error(`the server answered 404 to ${file}`)
}

async function downloadIfThere(
  source: string,
  file: string,
  folder: string,
  signal?: AbortSignal,
): Promise<boolean> {
  const limit = AbortSignal.timeout(TIMEOUT_MS)
  const options = { redirect: 'error', signal: signal ? AbortSignal.any([signal, limit]) : limit } as const
  const response = await fetch(`${source}/${file}`, options)
  if (response.status === 404) {
    await response.body?.cancel()
    return false
  }
  if (!response.ok || response.body === null)
    throw new Error(`the server answered ${response.status} to ${file}`)
  await pipeline(Readable.fromWeb(response.body as never), createWriteStream(join(folder, file)))
  return true
}

/** A published policy is a folder that this machine sees, or a URL under which the trainer's folder is served. */
import { createWriteStream } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { describeError, GraspError } from '../errors/grasp-error.ts'

/** What the engine needs of a policy; its tokenizer is the backbone's. */
const FILES = ['config.json', 'model.safetensors', 'tokenizer.json'] as const
const TIMEOUT_MS = 600_000

/** Returns a local folder with the policy; the engine checks its weights hash. Throws CHECKPOINT_INVALID. */
export async function fetchPolicy(path: string, cache: string, version: number): Promise<string> {
  if (!/^https?:\/\//.test(path)) return path
  const folder = join(cache, `v${String(version).padStart(6, '0')}`)
  const partial = `${folder}.partial`
  await rm(partial, { recursive: true, force: true })
  await mkdir(partial, { recursive: true })
  for (const file of FILES) await download(`${path.replace(/\/$/, '')}/${file}`, join(partial, file), version)
  await rm(folder, { recursive: true, force: true })
  await rename(partial, folder)
  return folder
}

async function download(url: string, target: string, version: number): Promise<void> {
  try {
    const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) })
    if (!response.ok || response.body === null) throw new Error(`the server answered ${response.status}`)
    await pipeline(Readable.fromWeb(response.body as never), createWriteStream(target))
  } catch (cause) {
    const message = `policy ${version} cannot be fetched from ${url}: ${describeError(cause)}; is output.url right?`
    throw new GraspError('CHECKPOINT_INVALID', message, { cause })
  }
}

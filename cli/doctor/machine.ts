/** Whether this machine can run the pipeline at all. */
import { mkdtemp, rm } from 'node:fs/promises'
import { arch, availableParallelism, cpus, freemem, platform, release, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { type Check, check, size } from './check.ts'

export async function machineChecks(): Promise<Check[]> {
  return Promise.all([
    check('Node', () => `${process.versions.node} (20.19 or newer is needed)`),
    check('platform', () => `${platform()} ${release()} ${arch()}`),
    check(
      'processor',
      () => `${availableParallelism()} cores usable, ${cpus()[0]?.model.trim() ?? 'unknown'}`,
    ),
    check('memory', () => `${size(totalmem())}, ${size(freemem())} free`),
    check('ONNX Runtime', onnxRuntime),
    check('LMDB', lmdb),
  ])
}

async function onnxRuntime(): Promise<string> {
  const { env, listSupportedBackends } = await import('onnxruntime-node')
  const backends = listSupportedBackends().map(({ name }) => name)
  return `${env.versions.node ?? env.versions.common} with ${backends.join(', ')}`
}

/** Writes, reads and removes a small database: the native module loads and the file system maps memory. */
async function lmdb(): Promise<string> {
  const { open } = await import('lmdb')
  const folder = await mkdtemp(join(tmpdir(), 'grasp-doctor-'))
  try {
    const database = open({ path: folder })
    await database.put('key', 'value')
    const value: unknown = database.get('key')
    await database.close()
    if (value !== 'value') throw new Error(`a value that was written to ${folder} was not read back`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return `writes and reads in ${tmpdir()}`
}

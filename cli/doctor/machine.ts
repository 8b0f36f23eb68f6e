/** Whether this machine can run the pipeline at all. */
import { mkdtemp, rm } from 'node:fs/promises'
import { arch, availableParallelism, cpus, platform, release, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DeviceReport } from '../../engine/devices/device.ts'
import { size } from '../../engine/devices/size.ts'
import { machineMemory } from '../../engine/memory/free-memory.ts'
import { type Check, check } from './check.ts'

export async function machineChecks(devices: readonly DeviceReport[]): Promise<Check[]> {
  return Promise.all([
    check('Node', () => `${process.versions.node} (20.19 or newer is needed)`),
    check('platform', () => `${platform()} ${release()} ${arch()}`),
    check(
      'processor',
      () => `${availableParallelism()} cores usable, ${cpus()[0]?.model.trim() ?? 'unknown'}`,
    ),
    check('memory', describeMemory),
    check('ONNX Runtime', () => onnxRuntime(devices)),
    check('LMDB', lmdb),
  ])
}

function describeMemory(): string {
  const { free, total, limited } = machineMemory()
  return `${size(total)}${limited ? ' (the limit of this container)' : ''}, ${size(free)} free`
}

/** Nothing runs without the CPU; what else there is to compute on is welcome, but not needed. */
async function onnxRuntime(devices: readonly DeviceReport[]): Promise<string> {
  const { env } = await import('onnxruntime-node')
  const version = env.versions.node ?? env.versions.common
  const cpu = devices.find(({ provider }) => provider === 'cpu')
  if (cpu && cpu.state !== 'works') throw new Error(`${version} does not compute on the CPU: ${cpu.detail}`)
  return version
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

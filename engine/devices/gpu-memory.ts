/** Memory of GPUs as their drivers state it to the system: nvidia-smi, and amdgpu's files in /sys. */
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface GpuMemory {
  readonly name: string
  readonly driver: string
  /** Bytes. */
  readonly total: number
  readonly free: number
}

const PATIENCE_MS = 10_000
const MIB = 2 ** 20

export async function gpuMemories(root = '/sys/class/drm'): Promise<GpuMemory[]> {
  return [...(await nvidiaMemories()), ...(await amdMemories(root))]
}

async function nvidiaMemories(): Promise<GpuMemory[]> {
  const query = ['--query-gpu=name,driver_version,memory.total,memory.free', '--format=csv,noheader,nounits']
  try {
    const options = { timeout: PATIENCE_MS, killSignal: 'SIGKILL' as const }
    return readNvidiaSmi((await promisify(execFile)('nvidia-smi', query, options)).stdout)
  } catch {
    return [] // no such program, or no such GPU
  }
}

/** Lines of `name, driver, MiB in all, MiB free`. */
export function readNvidiaSmi(text: string): GpuMemory[] {
  return text.split('\n').flatMap(line => {
    const [name, driver, total, free] = line.split(',').map(part => part.trim())
    if (!name || !driver || !(Number(total) > 0)) return []
    return [{ name, driver: `NVIDIA ${driver}`, total: Number(total) * MIB, free: Number(free) * MIB }]
  })
}

async function amdMemories(root: string): Promise<GpuMemory[]> {
  const cards = await readdir(root).catch(() => [])
  const found: GpuMemory[] = []
  for (const card of cards.filter(name => /^card\d+$/.test(name)).sort()) {
    const read = (name: string) =>
      readFile(join(root, card, 'device', name), 'utf8').then(
        text => text.trim(),
        () => undefined,
      )
    const [total, used] = [
      Number(await read('mem_info_vram_total')),
      Number(await read('mem_info_vram_used')),
    ]
    if (!(total > 0)) continue
    const name = (await read('product_name')) || `AMD GPU (${card})`
    found.push({ name, driver: 'amdgpu', total, free: total - (used || 0) })
  }
  return found
}

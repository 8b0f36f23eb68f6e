/** What this machine has to compute on: each provider is tried, and what is known of its device is put together. */
import { cudaLibraries, readLoadFailure } from './cuda-libraries.ts'
import { absent, type DeviceReport, error, fails, half, isRight, wrongly } from './device.ts'
import { describeEnding } from './ending-words.ts'
import { type GpuMemory, gpuMemories } from './gpu-memory.ts'
import { type ProviderFinding, probe } from './probe.ts'
import type { Outcome } from './run-apart.ts'
import { vulkanStatements } from './vulkan-info.ts'
import { webgpuReport } from './webgpu-report.ts'

/** In the order of PROVIDERS. */
export async function findDevices(): Promise<DeviceReport[]> {
  const [cpu, webgpu, statements, memories] = await Promise.all([
    probe('cpu'),
    probe('webgpu'),
    vulkanStatements(),
    gpuMemories(),
  ])
  return [cpuReport(cpu), webgpuReport(webgpu, statements, memories), await cudaReport(memories)]
}

export function cpuReport({ ending, finding }: Outcome<ProviderFinding>): DeviceReport {
  const wrong = describeEnding(ending)
  if (wrong !== undefined) return fails('cpu', wrong)
  if (!isRight(finding.error)) return fails('cpu', wrongly(finding.error))
  return { provider: 'cpu', state: 'works', detail: '', facts: [error(finding.error)] }
}

async function cudaReport(memories: readonly GpuMemory[]): Promise<DeviceReport> {
  const libraries = cudaLibraries()
  if (libraries === undefined) {
    return absent('cuda', `onnxruntime-node has no CUDA provider for ${process.platform}`)
  }
  const { folder, missing } = libraries
  if (missing.length > 0) {
    const [gpu] = nvidia(memories)
    const where = gpu ? [{ what: 'belongs in', value: folder, source: `for ${gpu.name}` }] : []
    return { ...absent('cuda', `${missing.join(' and ')} not installed`), facts: where }
  }
  const { ending, finding, words } = await probe('cuda')
  const wrong = readLoadFailure(words) ?? describeEnding(ending)
  if (wrong !== undefined) return fails('cuda', wrong)
  if (!isRight(finding.error)) return fails('cuda', wrongly(finding.error))
  // The provider takes the first GPU.
  const [gpu] = nvidia(memories)
  return {
    provider: 'cuda',
    state: 'works',
    detail: '',
    ...(gpu && { name: gpu.name, memory: { free: gpu.free, total: gpu.total, source: gpu.driver } }),
    facts: [error(finding.error), half(finding.half ?? false)],
  }
}

function nvidia(memories: readonly GpuMemory[]): readonly GpuMemory[] {
  return memories.filter(({ driver }) => driver.startsWith('NVIDIA'))
}

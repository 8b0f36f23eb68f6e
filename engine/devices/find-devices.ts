/** What this machine has to compute on: each provider is tried, and what is known of its device is put together. */

import { cudaLibraries, readLoadFailure } from './cuda-libraries.ts'
import { agreement, type DeviceMemory, type DeviceReport, type Fact } from './device.ts'
import { describeEnding } from './ending-words.ts'
import { type GpuMemory, gpuMemories } from './gpu-memory.ts'
import { type ProviderFinding, probe } from './probe.ts'
import type { Outcome } from './run-apart.ts'
import { size } from './size.ts'
import { type VulkanStatement, vulkanStatements } from './vulkan-info.ts'
import { isSoftware, readVulkanWords } from './vulkan-words.ts'

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

type Trial = Outcome<ProviderFinding>

export function cpuReport({ ending, finding }: Trial): DeviceReport {
  const wrong = describeEnding(ending)
  const right = agreement(finding.error)
  const state = wrong === undefined && right !== undefined ? 'works' : 'fails'
  return { provider: 'cpu', state, detail: wrong ?? right ?? wrongly(finding), facts: [] }
}

export function webgpuReport(
  { ending, finding, words }: Trial,
  statements: readonly VulkanStatement[] | undefined,
  memories: readonly GpuMemory[],
): DeviceReport {
  const { loader, devices, used, refusals } = readVulkanWords(words)
  const onVulkan = process.platform === 'linux'
  const right = agreement(finding.error)
  if (right === undefined) {
    const found = devices.length === 0 ? 'no Vulkan driver offers a device' : `found ${devices.join(', ')}`
    if (ending.kind === 'failed' && /No supported adapters/.test(ending.why)) {
      if (onVulkan && !loader) return absent('webgpu', 'the Vulkan loader libvulkan.so.1 is not installed')
      if (onVulkan && refusals.length > 0)
        return fails('webgpu', `${found}, which WebGPU refuses: ${refusals.join('; ')}`)
      return absent('webgpu', onVulkan ? `${found} that WebGPU can use` : 'no GPU that WebGPU can use')
    }
    return fails('webgpu', describeEnding(ending) ?? wrongly(finding))
  }
  const statement = used && statements?.find(({ name }) => name === used.name)
  const software = used !== undefined && (isSoftware(used.name) || statement?.type === 'CPU')
  const memory = memoryOf(used?.name, statement, memories)
  const others = devices.filter(name => name !== used?.name)
  // What came after the product is a limit of the device, unless the process did not survive it.
  const wrong = describeEnding(ending)
  return {
    provider: 'webgpu',
    state: wrong === undefined ? 'works' : 'fails',
    detail:
      wrong ?? `${software ? 'a software device, for trying things out: slower than cpu; ' : ''}${right}`,
    ...(used && { name: used.name }),
    software,
    facts: [
      ...(used
        ? [
            {
              what: 'driver',
              value: statement?.driver ? `${statement.driver} (${used.driver})` : used.driver,
              source: 'Vulkan loader',
            },
          ]
        : []),
      ...(others.length > 0
        ? [{ what: 'other devices', value: others.join(', '), source: 'Vulkan loader' }]
        : []),
      ...measuredFacts(finding, statement),
    ],
    ...(memory && { memory }),
  }
}

export async function cudaReport(memories: readonly GpuMemory[]): Promise<DeviceReport> {
  const libraries = cudaLibraries()
  if (libraries === undefined)
    return absent('cuda', `onnxruntime-node has no CUDA provider for ${process.platform}`)
  const { folder, missing } = libraries
  if (missing.length > 0) return absent('cuda', `${missing.join(' and ')} would have to be in ${folder}`)
  const trial = await probe('cuda')
  const right = agreement(trial.finding.error)
  const wrong = readLoadFailure(trial.words) ?? describeEnding(trial.ending)
  if (right === undefined || wrong !== undefined) return fails('cuda', wrong ?? wrongly(trial.finding))
  // The provider takes the first GPU.
  const [gpu] = memories.filter(({ driver }) => driver.startsWith('NVIDIA'))
  return {
    provider: 'cuda',
    state: 'works',
    detail: right,
    ...(gpu && { name: gpu.name, memory: { free: gpu.free, total: gpu.total, source: gpu.driver } }),
    facts: [halfFact(trial.finding)],
  }
}

function absent(provider: 'webgpu' | 'cuda', detail: string): DeviceReport {
  return { provider, state: 'absent', detail, facts: [] }
}

function fails(provider: 'webgpu' | 'cuda', detail: string): DeviceReport {
  return { provider, state: 'fails', detail, facts: [] }
}

function wrongly({ error }: Partial<ProviderFinding>): string {
  return error === undefined
    ? 'it gave no result'
    : `it computes wrongly: a product of matrices is off by ${error.toExponential(0)} of its greatest element`
}

function halfFact({ half }: Partial<ProviderFinding>): Fact {
  return { what: 'f16', value: half ? 'yes' : 'no', source: 'measured' }
}

function measuredFacts(
  { limits = {}, half, resident }: Partial<ProviderFinding>,
  statement: VulkanStatement | undefined,
): Fact[] {
  const measured = (what: string, value: string | undefined): Fact[] =>
    value === undefined ? [] : [{ what, value, source: 'measured' }]
  const { bufferBytes, madeBytes, bindingBytes, bindings } = limits
  const made = madeBytes === undefined ? undefined : `at least ${size(madeBytes)}`
  const stated = statement?.bindingBytes
  return [
    ...measured('largest buffer', bufferBytes === undefined ? made : size(bufferBytes)),
    ...(bindingBytes === undefined && stated !== undefined
      ? [{ what: 'largest binding', value: size(stated), source: 'stated by the driver' }]
      : measured('largest binding', bindingBytes === undefined ? undefined : size(bindingBytes))),
    ...measured('buffers a shader', bindings?.toString()),
    ...(half === undefined ? [] : [halfFact({ half })]),
    ...measured('results stay on it', resident === undefined ? undefined : resident ? 'yes' : 'no'),
  ]
}

function memoryOf(
  name: string | undefined,
  statement: VulkanStatement | undefined,
  memories: readonly GpuMemory[],
): DeviceMemory | undefined {
  const gpu = memories.find(
    memory => name !== undefined && (name.includes(memory.name) || memory.name.includes(name)),
  )
  if (gpu) return { free: gpu.free, total: gpu.total, source: gpu.driver }
  if (statement?.memory === undefined) return undefined
  const { memory, budget = memory } = statement
  return { free: budget, total: memory, source: 'stated by the driver' }
}

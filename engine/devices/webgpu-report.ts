/** What is known of the WebGPU device: measured, said by the Vulkan loader, or stated by a driver. */
import {
  absent,
  type DeviceMemory,
  type DeviceReport,
  error,
  type Fact,
  fails,
  half,
  isRight,
  measured,
  wrongly,
} from './device.ts'
import { describeEnding } from './ending-words.ts'
import type { GpuMemory } from './gpu-memory.ts'
import type { ProviderFinding } from './probe.ts'
import type { Outcome } from './run-apart.ts'
import { size } from './size.ts'
import type { VulkanStatement } from './vulkan-info.ts'
import { isSoftware, readVulkanWords, type VulkanWords } from './vulkan-words.ts'

export function webgpuReport(
  outcome: Outcome<ProviderFinding>,
  statements: readonly VulkanStatement[] | undefined,
  memories: readonly GpuMemory[],
): DeviceReport {
  const { ending, finding } = outcome
  const words = readVulkanWords(outcome.words)
  if (finding.error === undefined) return reportOfNone(outcome, words)
  if (!isRight(finding.error)) return fails('webgpu', wrongly(finding.error))
  const { used } = words
  const statement = used && statements?.find(({ name }) => name === used.name)
  const software = used !== undefined && (isSoftware(used.name) || statement?.type === 'CPU')
  const memory = memoryOf(used?.name, statement, memories)
  // What did not survive the trials after the product is no device to work with.
  const wrong = describeEnding(ending)
  return {
    provider: 'webgpu',
    state: wrong === undefined ? 'works' : 'fails',
    detail: wrong ?? (software ? 'a software device, for trying things out; slower than cpu' : ''),
    ...(used && { name: used.name }),
    software,
    facts: [...loaderFacts(words, statement), error(finding.error), ...limitFacts(finding, statement)],
    ...(memory && { memory }),
  }
}

function reportOfNone(
  { ending, finding }: Outcome<ProviderFinding>,
  { loader, devices, refusals }: VulkanWords,
): DeviceReport {
  if (ending.kind !== 'failed' || !/No supported adapters/.test(ending.why)) {
    return fails('webgpu', describeEnding(ending) ?? wrongly(finding.error))
  }
  if (process.platform !== 'linux') return absent('webgpu', 'there is no GPU that WebGPU can use')
  if (!loader) return absent('webgpu', 'the Vulkan loader libvulkan.so.1 is not installed')
  if (devices.length === 0) return absent('webgpu', 'no Vulkan driver offers a device')
  const why = refusals.length > 0 ? `: ${refusals.join('; ')}` : ''
  return absent('webgpu', `Vulkan offers ${devices.join(', ')}, which WebGPU refuses${why}`)
}

function loaderFacts({ used, devices }: VulkanWords, statement: VulkanStatement | undefined): Fact[] {
  const source = 'said by the Vulkan loader'
  const others = devices.filter(name => name !== used?.name)
  return [
    ...(statement?.driver
      ? [{ what: 'driver', value: statement.driver, source: 'stated by the driver' }]
      : []),
    ...(used ? [{ what: 'library', value: used.driver, source }] : []),
    ...(others.length > 0 ? [{ what: 'other devices', value: others.join(', '), source }] : []),
  ]
}

function limitFacts(
  { limits = {}, half: computesHalf, resident }: Partial<ProviderFinding>,
  statement: VulkanStatement | undefined,
): Fact[] {
  const { bufferBytes, madeBytes, bindingBytes, bindings } = limits
  const facts: Fact[] = []
  if (bufferBytes !== undefined) facts.push(measured('largest buffer', size(bufferBytes)))
  else if (madeBytes !== undefined) facts.push(measured('largest buffer', `at least ${size(madeBytes)}`))
  if (bindingBytes !== undefined) facts.push(measured('largest binding', size(bindingBytes)))
  else if (statement?.bindingBytes !== undefined) {
    facts.push({
      what: 'largest binding',
      value: size(statement.bindingBytes),
      source: 'stated by the driver',
    })
  }
  if (bindings !== undefined) facts.push(measured('buffers of a shader', `${bindings}`))
  if (computesHalf !== undefined) facts.push(half(computesHalf))
  if (resident !== undefined) facts.push(measured('keeps results', resident ? 'yes' : 'no'))
  return facts
}

/** What the GPU's own driver says to the system counts before what it says to Vulkan, since it knows what is free. */
function memoryOf(
  name: string | undefined,
  statement: VulkanStatement | undefined,
  memories: readonly GpuMemory[],
): DeviceMemory | undefined {
  if (name === undefined) return undefined
  const gpu = memories.find(memory => name.includes(memory.name) || memory.name.includes(name))
  if (gpu) return { free: gpu.free, total: gpu.total, source: `stated by ${gpu.driver}` }
  if (statement?.memory === undefined) return undefined
  const { memory, budget = memory } = statement
  return { free: budget, total: memory, source: 'stated by the driver' }
}

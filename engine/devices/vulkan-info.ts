/** What drivers state of their devices, read from `vulkaninfo` where it is installed. None of it is measured. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

export interface VulkanStatement {
  readonly name: string
  /** Such as `discrete GPU`, `integrated GPU`, `CPU`. */
  readonly type: string
  readonly driver: string
  /** Bytes of the largest heap on the device. */
  readonly memory?: number
  /** Bytes of that heap which this process may expect to get, where the driver says so. */
  readonly budget?: number
  /** Bytes that a shader sees of a buffer at once. */
  readonly bindingBytes?: number
}

const PATIENCE_MS = 10_000

/** One for each device, in the order of the drivers; undefined where the program is missing or fails. */
export async function vulkanStatements(): Promise<VulkanStatement[] | undefined> {
  try {
    const options = { timeout: PATIENCE_MS, maxBuffer: 2 ** 26, killSignal: 'SIGKILL' as const }
    return readVulkanInfo((await promisify(execFile)('vulkaninfo', [], options)).stdout)
  } catch {
    return undefined
  }
}

export function readVulkanInfo(text: string): VulkanStatement[] {
  const start = text.indexOf('\nDevice Properties and Extensions:')
  if (start < 0) return []
  // Each device's part begins with its number alone on a line.
  const parts = text
    .slice(start)
    .split(/^GPU\d+:$/m)
    .slice(1)
  return parts.flatMap(part => {
    const name = statedIn(part, 'deviceName')
    if (name === undefined) return []
    const type =
      statedIn(part, 'deviceType')?.replace('PHYSICAL_DEVICE_TYPE_', '').replace('_', ' ') ?? 'unknown'
    const driver = [statedIn(part, 'driverName'), statedIn(part, 'driverInfo')].filter(Boolean).join(', ')
    const binding = statedIn(part, 'maxStorageBufferRange')
    const statement: VulkanStatement = {
      name,
      type: type.replace('DISCRETE', 'discrete').replace('INTEGRATED', 'integrated'),
      driver,
      ...(binding !== undefined && { bindingBytes: Number(binding) }),
      ...largestHeap(part),
    }
    return [statement]
  })
}

function statedIn(text: string, key: string): string | undefined {
  const value = new RegExp(`^\\s*${key}\\s*= (.*)$`, 'm').exec(text)?.[1]?.trim()
  return value === '' ? undefined : value
}

function largestHeap(part: string): Pick<VulkanStatement, 'memory' | 'budget'> {
  const heaps = (/^memoryHeaps:([\s\S]*?)^memoryTypes:/m.exec(part)?.[1] ?? '').split(/memoryHeaps\[\d+\]:/)
  const local = heaps.filter(heap => heap.includes('MEMORY_HEAP_DEVICE_LOCAL_BIT'))
  const sized = local.map(heap => ({ heap, memory: Number.parseInt(statedIn(heap, 'size') ?? '', 10) }))
  const [largest] = sized.filter(({ memory }) => memory > 0).sort((a, b) => b.memory - a.memory)
  if (!largest) return {}
  const budget = Number.parseInt(statedIn(largest.heap, 'budget') ?? '', 10)
  return { memory: largest.memory, ...(budget > 0 && { budget }) }
}

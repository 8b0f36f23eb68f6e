/** Whether a provider of onnxruntime-node really works on this machine: tried in a process of its own. */
import type { DeviceLimits } from './device-limits.ts'
import type { Provider } from './provider.ts'
import { type Outcome, runApart } from './run-apart.ts'
import { withLoaderWords } from './vulkan-words.ts'

/** Everything here was measured. */
export interface ProviderFinding {
  /** Greatest error of a product of matrices, relative to its greatest element. */
  readonly error: number
  /** It computes with numbers of 16 bits. */
  readonly half: boolean
  /** A result can stay on the device and feed the next run. */
  readonly resident: boolean
  readonly limits: DeviceLimits
}

/** A first session on a GPU compiles shaders, which takes seconds on some drivers. */
const PATIENCE_MS = 30_000

export function probe(
  provider: Provider,
  timeoutMs: number = PATIENCE_MS,
): Promise<Outcome<ProviderFinding>> {
  const name = import.meta.url.endsWith('.ts') ? './probe-child.ts' : './probe-child.js'
  return runApart(new URL(name, import.meta.url), {
    arguments: [provider],
    environment: withLoaderWords(process.env),
    timeoutMs,
  })
}

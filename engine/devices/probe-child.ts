/**
 * Tries one provider: `node probe-child.js PROVIDER`, started by probe.ts. The product of two small matrices is
 * compared with the same product computed here; on a GPU also what the engine relies on: results that stay on the
 * device and feed the next run, half precision, and how large a buffer may be.
 */
import { describeError } from '../../errors/grasp-error.ts'
import { measureLimits } from './device-limits.ts'
import type { ProviderFinding } from './probe.ts'
import type { Provider } from './provider.ts'
import type { Word } from './run-apart.ts'
import { halfPrecision, productError, staysOnDevice } from './trial-graphs.ts'

const provider = process.argv[2] as Provider

function say(word: Word<ProviderFinding>): void {
  process.send!(word)
}

function stage(name: string): void {
  say({ stage: name })
}

/** What fails here is a lack of the device, not a fault of the provider. */
async function optional<T>(name: string, find: () => Promise<T>): Promise<T | undefined> {
  stage(name)
  try {
    return await find()
  } catch {
    return undefined
  }
}

try {
  stage('computing a product of matrices')
  say({ finding: { error: await productError(provider) } })
  if (provider !== 'cpu') {
    const half = await optional('computing in half precision', () => halfPrecision(provider))
    say({ finding: { half: half ?? false } })
  }
  if (provider === 'webgpu') {
    const resident = await optional('keeping a result on the device', staysOnDevice)
    say({ finding: { resident: resident ?? false } })
    const limits = await optional('asking for large buffers', measureLimits)
    if (limits) say({ finding: { limits } })
  }
} catch (error) {
  say({ failure: describeError(error) })
}
// Native threads of a driver may keep the process alive.
process.disconnect()
setImmediate(() => process.exit(0))

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
// Whoever asked is gone.
process.on('disconnect', () => process.exit(0))
if (!process.connected) process.exit(0)

/** Until it is on its way: what comes next may be the end of this process. */
function say(word: Word<ProviderFinding>): Promise<void> {
  return new Promise(resolve => process.send!(word, undefined, undefined, () => resolve()))
}

/** What fails here is a lack of the device, not a fault of the provider. */
async function optional<T>(stage: string, find: () => Promise<T>): Promise<T | undefined> {
  await say({ stage })
  try {
    return await find()
  } catch {
    return undefined
  }
}

try {
  await say({ stage: 'computing a product of matrices' })
  await say({ finding: { error: await productError(provider) } })
  if (provider !== 'cpu') {
    const half = await optional('computing in half precision', () => halfPrecision(provider))
    await say({ finding: { half: half ?? false } })
  }
  if (provider === 'webgpu') {
    const resident = await optional('keeping a result on the device', staysOnDevice)
    await say({ finding: { resident: resident ?? false } })
    const limits = await optional('asking for large buffers', measureLimits)
    if (limits) await say({ finding: { limits } })
  }
} catch (error) {
  await say({ failure: describeError(error) })
}
// Native threads of a driver may keep the process alive.
process.exit(0)

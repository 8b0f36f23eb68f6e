/** Opens an engine on the model that is named and leaves it open. */
import { openEngineProcess } from '../../../engine/process/proxy.ts'

const engine = await openEngineProcess({
  path: process.argv[2]!,
  device: 'cpu',
  threads: 1,
  keepPolicies: 0,
  tokensPerPass: 256,
  sequencesPerPass: 4,
})
await engine.info()

/** Opens an engine on the model that is named, stops it so that it can notice nothing, says which, and leaves. */
import { openEngineProcess } from '../../../engine/process/proxy.ts'
import { enginesOf } from '../../helpers/engine-processes.ts'

await openEngineProcess({
  path: process.argv[2]!,
  device: 'cpu',
  threads: 1,
  keepPolicies: 0,
  tokensPerPass: 256,
  sequencesPerPass: 4,
})
const [engine] = enginesOf(process.pid)
process.kill(engine!, 'SIGSTOP')
process.stdout.write(`${engine}\n`, () => process.exit())

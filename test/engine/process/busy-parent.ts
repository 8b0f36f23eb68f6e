/** Opens an engine on the model that is named and keeps it busy; a Ctrl-C makes it finish its call and close. */
import { openEngineProcess } from '../../../engine/process/proxy.ts'

let interrupted = false
process.on('SIGINT', () => {
  interrupted = true
})
const engine = await openEngineProcess({
  path: process.argv[2]!,
  device: 'cpu',
  threads: 1,
  keepPolicies: 0,
  tokensPerPass: 256,
  sequencesPerPass: 4,
})
const generate = () =>
  engine.generate(0, [{ key: 'a', ids: Int32Array.of(5) }], {
    temperature: 1,
    topK: 0,
    topP: 1,
    minP: 0,
    stop: [],
    maxNewTokens: 250,
    seed: 1,
  })
process.stdout.write('open\n')
while (!interrupted) await generate()
process.stdout.write('interrupted\n')
await generate()
process.stdout.write('answered\n')
await engine.close()
process.stdout.write('closed\n')

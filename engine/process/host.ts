/**
 * The engine's process: answers the parent's requests in order, and lives exactly as long as the parent wants.
 * The parent decides what a Ctrl-C makes of the step at hand, so signals that ask to end are not obeyed here. When the parent is gone, however it died, the channel closes and this process ends.
 */

import { openLocalEngine } from '../local-engine.ts'
import type { Engine } from '../port.ts'
import { type ReplyMessage, type RequestMessage, toErrorMessage } from './protocol.ts'

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.on('disconnect', () => process.exit(0))

let engine: Engine | undefined

process.on('message', async (request: RequestMessage) => {
  reply(
    await answer(request).then(
      result => ({ id: request.id, result }),
      error => ({ id: request.id, error: toErrorMessage(error) }),
    ),
  )
})

async function answer(request: RequestMessage): Promise<unknown> {
  if ('open' in request) {
    engine = await openLocalEngine(request.open)
    return undefined
  }
  const method = engine![request.method] as (...args: readonly unknown[]) => Promise<unknown>
  return method.apply(engine, [...request.args])
}

function reply(message: ReplyMessage): void {
  // A parent that died meanwhile takes no answer; `disconnect` ends this process.
  if (process.connected) process.send!(message, undefined, undefined, () => {})
}

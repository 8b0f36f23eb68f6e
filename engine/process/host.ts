/**
 * The engine's process: answers the parent's requests in order, and lives exactly as long as the parent wants. What
 * becomes of the step at hand after a Ctrl-C is the parent's to decide, so signals that ask to end are not obeyed here.
 * When the parent is gone, however it died, the channel closes and this process ends.
 */

import { openLocalEngine } from '../local-engine.ts'
import type { Engine } from '../port.ts'
import { checkSize } from './message-size.ts'
import { type ParentMessage, type RequestMessage, toErrorMessage } from './protocol.ts'

/** Between signs of life, as far as graphs let them through. */
const SIGN_MS = 500

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.on('disconnect', () => process.exit(0))
// One that died while the imports above were read: nobody was listening yet.
if (!process.connected) process.exit(0)

let engine: Engine | undefined
let unanswered = 0

// On this thread, which each graph blocks until it has run: a thread of its own would go on where this one hangs.
setInterval(() => {
  if (unanswered > 0) send({ alive: true })
}, SIGN_MS)
send({ alive: true })

process.on('message', async (request: RequestMessage) => {
  unanswered++
  const reply = await answer(request).then(
    result => ({ id: request.id, result }),
    error => ({ id: request.id, error: toErrorMessage(error) }),
  )
  unanswered--
  send(reply)
})

async function answer(request: RequestMessage): Promise<unknown> {
  if ('open' in request) {
    engine = await openLocalEngine(request.open)
    return undefined
  }
  const method = engine![request.method] as (...args: readonly unknown[]) => Promise<unknown>
  const result = await method.apply(engine, [...request.args])
  checkSize(`the answer to ${request.method}`, result)
  return result
}

function send(message: ParentMessage): void {
  // A parent that died meanwhile takes no answer; `disconnect` ends this process.
  if (process.connected) process.send!(message, undefined, undefined, () => {})
}

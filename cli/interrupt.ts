/**
 * Ctrl-C and SIGTERM. The first asks the run to finish its step, checkpoint and stop; the second ends the
 * process at once, which loses nothing, since all that counts is in the log or in a checkpoint.
 */
import { EXIT } from './exit-code.ts'

/**
 * Signals within this many milliseconds are one press: `npm start` forwards a Ctrl-C that the terminal has
 * already sent to the whole process group.
 */
const SAME_PRESS_MS = 200

export interface Interrupt extends Disposable {
  readonly signal: AbortSignal
}

/** `tell` gets one line to show; `leave` ends the process (a test gives its own). */
export function onInterrupt(
  tell: (line: string) => void,
  leave: (code: number) => void = code => process.exit(code),
): Interrupt {
  const controller = new AbortController()
  let first = 0
  const handle = () => {
    const now = performance.now()
    if (!controller.signal.aborted) {
      first = now
      tell('stopping after this step and a checkpoint; once more stops at once (the log loses nothing)')
      controller.abort()
    } else if (now - first > SAME_PRESS_MS) {
      tell('stopped; the same command goes on from the last checkpoint')
      leave(EXIT.interrupted)
    }
  }
  process.on('SIGINT', handle)
  process.on('SIGTERM', handle)
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      process.off('SIGINT', handle)
      process.off('SIGTERM', handle)
    },
  }
}

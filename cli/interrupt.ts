/**
 * Ctrl-C and SIGTERM. Where a command can stop in good order, the first asks it to; the second ends the process
 * at once, which loses nothing, since all that counts is in the log or in a checkpoint. Elsewhere the first does. Before
 * a command listens, while programs are read, bin/grasp.js does.
 */
import { EXIT } from './exit-code.ts'

/**
 * Signals within this many milliseconds are one press: `npm start` forwards a Ctrl-C that the terminal has
 * already sent to the whole process group.
 */
const SAME_PRESS_MS = 200

export interface Interrupt extends Disposable {
  /** From now on the first press only asks: it aborts the signal and says so by `text`. Until then it ends the process. */
  askToStop(text?: string): AbortSignal
}

/**
 * Ends the process as a Ctrl-C does that nobody listens for, which shells show as exit code 130; those who wait for the end
 * (engines are killed then) hear of it first. `process.exit` would wait for native threads: LMDB's waits for JavaScript
 * while a transaction is open, so neither would ever end.
 */
export function endAtOnce(): void {
  process.emit('exit', EXIT.interrupted)
  // A container's first process is not killed by its own signals.
  if (process.platform === 'win32' || process.pid === 1) process.exit(EXIT.interrupted)
  process.removeAllListeners('SIGINT')
  process.kill(process.pid, 'SIGINT')
}

/** `tell` gets one line to show; `leave` ends the process. */
export function onInterrupt(tell: (line: string) => void, leave: () => void): Interrupt {
  const controller = new AbortController()
  let asking = false
  let saying: string | undefined
  let first = 0
  const handle = () => {
    const now = performance.now()
    if (!asking) {
      tell('interrupted; the same command begins again with what is there')
      leave()
    } else if (!controller.signal.aborted) {
      first = now
      if (saying !== undefined) tell(`${saying}; once more stops at once (the log loses nothing)`)
      controller.abort()
    } else if (now - first > SAME_PRESS_MS) {
      tell('stopped at once; the same command goes on from what the log has')
      leave()
    }
  }
  process.on('SIGINT', handle)
  process.on('SIGTERM', handle)
  return {
    askToStop(text) {
      asking = true
      saying = text
      return controller.signal
    },
    [Symbol.dispose]() {
      process.off('SIGINT', handle)
      process.off('SIGTERM', handle)
    },
  }
}

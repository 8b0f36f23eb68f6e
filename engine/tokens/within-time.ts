/**
 * Ends work that does not end by itself. JavaScript cannot be interrupted from its own thread, but V8's watchdog for
 * scripts can, and it also ends what a script calls: here nothing else runs in the script's context, which is no sandbox.
 */
import { type Context, createContext, Script } from 'node:vm'

const script = new Script('work()')
/** Made when it is first needed. */
let context: Context | undefined

/** Thrown where the time is over; what the work holds of locks or files is not released. */
export class TimeOver extends Error {}

/**
 * Gives what `work` gives, or throws what it throws. It must not be asynchronous.
 * @param seconds wall-clock time
 */
export function withinTime<T>(seconds: number, work: () => T): T {
  context ??= createContext({})
  context.work = work
  try {
    return script.runInContext(context, { timeout: 1000 * seconds })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException | undefined)?.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw cause
    throw new TimeOver(`not done after ${seconds} s`, { cause })
  } finally {
    context.work = undefined
  }
}

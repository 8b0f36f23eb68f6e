import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { GraspError } from '../errors/grasp-error.ts'
import type { Streams } from './streams.ts'

/**
 * Asks on the terminal. Errors: INTERRUPTED where the answer is not yes, CONFIG_INVALID where nobody can be asked.
 */
export async function confirm(question: string, { stdin, stderr }: Streams): Promise<void> {
  if (!stdin.isTTY || !stderr.isTTY) {
    throw new GraspError(
      'CONFIG_INVALID',
      'there is no terminal to ask on; give --yes to do it, or --dry-run to look',
    )
  }
  stderr.write(`${question} [y/N] `)
  // Not as a terminal: then Ctrl-C stays the signal that it is everywhere else.
  const lines = createInterface({ input: stdin, terminal: false })
  const [answer] = (await Promise.race([once(lines, 'line'), once(lines, 'close')])) as [string?]
  lines.close()
  if (/^y(es)?$/i.test(answer?.trim() ?? '')) return
  throw new GraspError('INTERRUPTED', 'nothing was changed')
}

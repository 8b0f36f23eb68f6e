/**
 * Runs a command within the test's own process: starting one takes a second or more. The working directory
 * changes meanwhile, so one command runs at a time.
 */
import { PassThrough } from 'node:stream'
import { runArguments } from '../../cli/main.ts'
import type { Ended } from './grasp.ts'

export interface InProcessOptions {
  readonly cwd: string
  /** Called with each piece of standard output, as it is printed. */
  readonly watch?: (text: string) => void
}

export async function graspHere(
  args: readonly string[],
  { cwd, watch }: InProcessOptions,
): Promise<Ended & { readonly code: number }> {
  const [stdout, stderr]: [string[], string[]] = [[], []]
  const collect = (texts: string[], tell?: (text: string) => void) => ({
    write(text: string) {
      texts.push(text)
      tell?.(text)
    },
  })
  const before = process.cwd()
  process.chdir(cwd)
  try {
    const streams = {
      stdin: new PassThrough().end(),
      stdout: collect(stdout, watch),
      stderr: collect(stderr),
    }
    const code = await runArguments(['node', 'grasp', ...args], streams)
    return { code, stdout: stdout.join(''), stderr: stderr.join('') }
  } finally {
    process.chdir(before)
  }
}

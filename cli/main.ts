/** The command `grasp`. Only what `--help` needs is loaded here; each command brings its own machinery. */
import { CommanderError } from 'commander'
import { EXIT } from './exit-code.ts'
import { renderError } from './explain.ts'
import { createProgram } from './program.ts'
import type { Streams } from './streams.ts'

/** Writes out what is buffered: on pipes, writes are asynchronous and `process.exit` would drop them. */
async function flushed(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength > 0) await new Promise(resolve => stream.write('', resolve))
}

/** Runs the command that `argv` (as Node has it) names, and gives its exit code. */
export async function runArguments(argv: readonly string[], streams: Streams): Promise<number> {
  let code: number = EXIT.ok
  const program = createProgram(ended => {
    code = ended
  }, streams)
  try {
    await program.parseAsync(argv)
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // Commander has said what is wrong; help and version are successes.
    if (error.exitCode === 0) return EXIT.ok
    code = EXIT.usage
    if (argv.includes('--json')) {
      const message = error.message.replace(/^error: /, '')
      streams.stdout.write(`${JSON.stringify({ error: { code: 'USAGE', message } })}\n`)
    }
  }
  return code
}

export async function main(argv: readonly string[]): Promise<void> {
  // `grasp topics tail … | head` closes the pipe: the reader has enough, which is no failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT.ok)
    throw error
  })
  process.on('uncaughtException', error => {
    process.stderr.write(renderError(error, true))
    process.exit(EXIT.failure)
  })
  const code = await runArguments(argv, process)
  await flushed(process.stdout)
  await flushed(process.stderr)
  process.exit(code)
}

/** What every command is given, and how it ends: one result on standard output, everything else on standard error. */
import { firstFailure } from '../errors/first-failure.ts'
import type { Config } from '../pipelines/config/config.ts'
import type { RunHooks } from '../pipelines/events.ts'
import { EXIT, exitCode } from './exit-code.ts'
import { explain, renderError } from './explain.ts'
import { endAtOnce, onInterrupt } from './interrupt.ts'
import type { LogLevel } from './log-levels.ts'
import { createLogger } from './logger.ts'
import { createProgress, progressMode } from './progress.ts'
import type { Streams } from './streams.ts'
import { visible } from './visible.ts'

/** The options that all commands share, as commander gives them. */
export interface CommonOptions {
  readonly config?: string
  readonly set?: readonly string[]
  readonly json?: boolean
  readonly logLevel?: LogLevel
  readonly progress?: boolean
}

export interface Session {
  readonly streams: Streams
  readonly hooks: Omit<RunHooks, 'signal'>
  /** From now on a Ctrl-C first aborts this signal, saying `text`, instead of ending the process. */
  askToStop(text?: string): AbortSignal
  /** Reads the configuration that the options name. */
  config(): Promise<Config>
  /** The command's result: `document` with --json, else `text`. Once. */
  result(document: unknown, text: string): void
  /** One record of a stream of results, a line of JSON. */
  line(document: unknown): void
  /** One line for the person, on standard error. */
  say(text: string): void
  /** Ends the command with a failure although it gave a result. */
  fail(): void
}

/** Runs a command to its end and returns the exit code; all output is written by then. */
export async function runCommand(
  options: CommonOptions,
  work: (session: Session) => Promise<void>,
  streams: Streams = process,
): Promise<number> {
  const { stdout, stderr } = streams
  const { logLevel = 'warn', json = false } = options
  const human = stderr.isTTY === true
  using progress = createProgress(stderr, progressMode(stderr, options.progress ?? true, process.env))
  const forPerson = human ? visible : (text: string) => text
  const say = (text: string) => progress.print(`${forPerson(text)}\n`)
  using interrupt = onInterrupt(say, () => {
    progress[Symbol.dispose]()
    endAtOnce()
  })
  const logger = createLogger(logLevel, human, text => progress.print(text))
  let code: number = EXIT.ok
  const session: Session = {
    streams,
    hooks: { logger, progress: event => progress.event(event) },
    askToStop: text => interrupt.askToStop(text),
    async config() {
      const { loadConfig } = await import('../pipelines/config/load.ts')
      return loadConfig({ file: options.config, set: options.set })
    },
    result(document, text) {
      progress[Symbol.dispose]()
      if (json) stdout.write(`${JSON.stringify(document, null, 2)}\n`)
      else stdout.write(stdout.isTTY ? visible(text) : text)
    },
    line: document => stdout.write(`${JSON.stringify(document)}\n`),
    say,
    fail() {
      code = EXIT.failure
    },
  }
  try {
    await work(session)
  } catch (thrown) {
    const error = firstFailure(thrown)
    code = exitCode(error)
    progress[Symbol.dispose]()
    // On one line, since it may come after lines of records.
    if (json) stdout.write(`${JSON.stringify({ error: explain(error) })}\n`)
    stderr.write(forPerson(renderError(error, logLevel === 'debug')))
  }
  return code
}

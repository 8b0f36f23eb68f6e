/** Options that several commands share. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { LOG_LEVELS } from './log-levels.ts'
import type { Session } from './session.ts'

export type Work = (session: Session, options: never, ...args: never[]) => Promise<void>

/** Adds a command whose action is loaded lazily; arguments come before options in its parameters' order. */
export type AddCommand = (parent: Command, usage: string, what: string, load: () => Promise<Work>) => Command

export function wholeNumber(text: string): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value))
    throw new InvalidArgumentError('expected a whole number.')
  return value
}

export function collect(value: string, before: string[] = []): string[] {
  return [...before, value]
}

export function withOutput(
  command: Command,
  json = 'print one JSON document on standard output, also for an error',
): Command {
  return command
    .option('--json', json)
    .addOption(
      new Option('--log-level <level>', 'least level of log lines on standard error')
        .choices(LOG_LEVELS)
        .default('warn'),
    )
}

export function withConfig(command: Command): Command {
  return command
    .option('-c, --config <file>', 'configuration file (default: grasp.yaml)')
    .option('--set <key=value>', 'change one key of the configuration; may be repeated', collect)
}

/** Options that several commands share. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { LOG_LEVELS } from './log-levels.ts'
import type { Session } from './session.ts'

export type Work = (session: Session, options: never, ...args: never[]) => Promise<void>

/**
 * Adds a command whose action is loaded lazily; arguments come before options in its parameters' order. `examples`
 * stand below its options in its help.
 */
export type AddCommand = (
  parent: Command,
  usage: string,
  what: string,
  load: () => Promise<Work>,
  examples?: string,
) => Command

const COMMON = 'Common options:'

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
    .addOption(new Option('--json', json).helpGroup(COMMON))
    .addOption(
      new Option('--log-level <level>', 'least level of log lines on standard error')
        .choices(LOG_LEVELS)
        .default('warn')
        .helpGroup(COMMON),
    )
}

export function withConfig(command: Command): Command {
  return command
    .addOption(
      new Option('-c, --config <file>', 'configuration file (default: grasp.yaml)').helpGroup(COMMON),
    )
    .addOption(
      new Option('--set <key=value>', 'change one key of the configuration; may be repeated')
        .argParser(collect)
        .helpGroup(COMMON),
    )
}

/** In its help, a command's own options stand first, and of these what must be given. */
export function ownOptionsFirst(command: Command): void {
  const rank = ({ helpGroupHeading, mandatory }: Option) =>
    helpGroupHeading === COMMON ? 2 : mandatory ? 0 : 1
  ;(command.options as Option[]).sort((a, b) => rank(a) - rank(b))
  for (const child of command.commands) ownOptionsFirst(child)
}

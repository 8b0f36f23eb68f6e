/** The log of the process, on standard error: JSON lines, or short text lines where a person is looking. */
import pino, { type Logger } from 'pino'
import type { LogLevel } from './log-levels.ts'
import { visible } from './visible.ts'

/** Fields that pino adds by itself. */
const OWN = new Set(['level', 'time', 'pid', 'hostname', 'msg'])

/** `{"level":40,"msg":"text","file":"x"}` → `warn: text file=x`. */
export function humanLine(json: string): string {
  const { level, msg, ...rest } = JSON.parse(json) as { level: number; msg?: string } & Record<
    string,
    unknown
  >
  const name = pino.levels.labels[level] ?? String(level)
  const fields = Object.entries(rest)
    .filter(([key]) => !OWN.has(key))
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return `${[`${name}:`, msg ?? '', ...fields].filter(Boolean).join(' ')}\n`
}

export function createLogger(level: LogLevel, human: boolean, print: (text: string) => void): Logger {
  return pino({ level, base: null }, { write: line => print(human ? visible(humanLine(line)) : line) })
}

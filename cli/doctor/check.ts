import { explain } from '../explain.ts'

export interface Check {
  readonly name: string
  readonly ok: boolean
  /** What was found, or what is wrong and what to do. */
  readonly detail: string
}

/** Runs one check: what it returns is found to be right, what it throws is wrong. */
export async function check(name: string, find: () => Promise<string> | string): Promise<Check> {
  try {
    return { name, ok: true, detail: await find() }
  } catch (error) {
    const { message, hint } = explain(error)
    return {
      name,
      ok: false,
      detail: hint && hint !== '' && !message.includes(hint) ? `${message} (${hint})` : message,
    }
  }
}

/** 1536 → `1.5 KiB`. */
export function size(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']
  const power = bytes < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10))
  const value = bytes / 1024 ** power
  return `${power === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${units[power]}`
}

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

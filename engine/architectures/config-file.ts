/**
 * Reads config.json for an architecture. Whatever the engine does not implement is refused by name: ignoring an
 * option would run another model than the one that was given.
 */
import type { z } from 'zod'
import { GraspError } from '../../errors/grasp-error.ts'

export class ConfigFile {
  readonly path: string
  readonly #raw: unknown

  /** @param path names the file in errors. */
  constructor(path: string, raw: unknown) {
    this.path = path
    this.#raw = raw
  }

  /** @throws GraspError MODEL_INVALID naming the keys that are missing or wrong. */
  parse<T extends z.ZodType>(schema: T): z.infer<T> {
    const parsed = schema.safeParse(this.#raw)
    if (parsed.success) return parsed.data
    throw this.invalid(parsed.error.issues.map(issue => this.#describe(issue)).join('; '))
  }

  /** @throws GraspError MODEL_UNSUPPORTED unless the value is absent or one of the given ones. */
  only(option: string, found: unknown, supported: readonly unknown[]): void {
    if (found === undefined || found === null || supported.includes(found)) return
    throw this.unsupported(option, found, supported.join(', '))
  }

  /** @throws GraspError MODEL_UNSUPPORTED when one of the options is there (not null, not false). */
  without(values: Readonly<Record<string, unknown>>, options: readonly string[]): void {
    for (const option of options) {
      const found = values[option]
      if (found === undefined || found === null || found === false) continue
      throw this.unsupported(option, found, 'models without it')
    }
  }

  /** `hidden_size is -32: Too small: expected number to be >0` */
  #describe({ path, message }: z.core.$ZodIssue): string {
    const value = path.reduce<unknown>(
      (object, key) => (object as Readonly<Record<PropertyKey, unknown>> | undefined)?.[key],
      this.#raw,
    )
    if (value === undefined) return path.length === 0 ? message : `it lacks ${path.join('.')}`
    return `${path.join('.')} is ${JSON.stringify(value)}: ${message}`
  }

  invalid(what: string): GraspError {
    return new GraspError('MODEL_INVALID', `${this.path} is wrong: ${what}`)
  }

  unsupported(option: string, found: unknown, supported: string): GraspError {
    const what = `${this.path}: ${option} is ${JSON.stringify(found)}; supported: ${supported}`
    return new GraspError('MODEL_UNSUPPORTED', what)
  }
}

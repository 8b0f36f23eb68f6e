/** `--set key=value`: a value for one key of the configuration, given on the command line. */
import { isMap, isScalar, parseDocument } from 'yaml'
import { GraspError } from '../../errors/grasp-error.ts'
import { withoutCredentials } from './problems.ts'
import { formatPath, shapeAt } from './shape.ts'

export interface Override {
  /** As it was given, for messages. */
  readonly argument: string
  readonly path: readonly string[]
  readonly value: unknown
}

/** Keys whose value may be a secret, put there by mistake: also those of sections that hold none but have one near. */
const SECRET = /(?<!per)pass|secret|credential|api-?key|pwd|\bpw\b|token$|sasl$|registry$/i
/** The same as a key within a value in braces, and a private key where its file is meant. */
const SECRET_INSIDE = /(pass|secret|credential|api-?key|pwd|\bpw\b|token)\w*['"]?\s*:|-----BEGIN/i

/** The argument for messages: without a value that is, or holds, a secret put there by mistake. */
export function shownArgument(argument: string): string {
  const equals = argument.indexOf('=')
  const key = argument.slice(0, equals)
  const value = argument.slice(equals + 1)
  const secret = (SECRET.test(key) && !/file$/i.test(key)) || SECRET_INSIDE.test(value)
  return equals >= 0 && secret ? `${key}=…` : withoutCredentials(argument)
}

function fail(argument: string, what: string): never {
  throw new GraspError('CONFIG_INVALID', `--set ${shownArgument(argument)}: ${what}`)
}

/** The value is YAML (so numbers are numbers and `[0.9, 0.95]` is a list), but text where text is expected. */
export function parseOverride(argument: string, root: unknown): Override {
  const equals = argument.indexOf('=')
  if (equals < 1) fail(argument, 'expected key=value, such as training.seed=2')
  const path = argument.slice(0, equals).trim().split('.')
  const text = argument.slice(equals + 1)
  if (path.some(key => key === '')) fail(argument, `'${argument.slice(0, equals)}' is not a key path`)
  if (text.trim() === '') fail(argument, `no value after '=' for ${formatPath(path)}`)
  const shape = shapeAt(path, root)
  if (shape?.type === 'string') return { argument, path, value: text }
  const document = parseDocument(text)
  const [error] = document.errors
  if (error) fail(argument, `the value cannot be read: ${error.message.split('\n')[0]}`)
  const value: unknown = document.toJS()
  // `a: b` would be a section by accident; a section is meant only when it is written in braces.
  if (isMap(document.contents) && !document.contents.flow) return { argument, path, value: text }
  if (isScalar(document.contents) && value === null) fail(argument, `no value for ${formatPath(path)}`)
  return { argument, path, value }
}

/** Puts the value in its place; sections on the way are made as needed. Existing objects are changed. */
export function applyOverride(root: Record<string, unknown>, override: Override): void {
  let section = root
  const last = override.path.length - 1
  for (const key of override.path.slice(0, last)) {
    const below = Object.hasOwn(section, key) ? section[key] : undefined
    if (below === null || typeof below !== 'object' || Array.isArray(below)) {
      Object.defineProperty(section, key, { value: {}, enumerable: true, writable: true, configurable: true })
    }
    section = section[key] as Record<string, unknown>
  }
  const key = override.path[last] as string
  Object.defineProperty(section, key, {
    value: override.value,
    enumerable: true,
    writable: true,
    configurable: true,
  })
}

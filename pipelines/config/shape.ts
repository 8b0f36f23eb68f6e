/**
 * The configuration's schema seen as a tree of JSON Schema nodes: what is at a key path, in words. Errors,
 * path resolution and the template of `grasp init` all read it, so none of them repeats the schema.
 */
import { z } from 'zod'
import { configSchema } from './config.ts'

/** The parts of JSON Schema that the configuration's schema uses. */
export interface Shape {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  readonly description?: string
  readonly default?: unknown
  readonly format?: string
  readonly pattern?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly properties?: Readonly<Record<string, Shape>>
  readonly required?: readonly string[]
  readonly prefixItems?: readonly Shape[]
  readonly items?: Shape
  readonly minItems?: number
  readonly minLength?: number
  readonly oneOf?: readonly Shape[]
  /** One value, written in several ways. */
  readonly anyOf?: readonly Shape[]
}

export type KeyPath = readonly (string | number)[]

export const configShape = z.toJSONSchema(configSchema, { io: 'input' }) as unknown as Shape

/** `training.betas[0]`; the whole configuration is ''. */
export function formatPath(path: KeyPath): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    return text === '' ? key : `${text}.${key}`
  }, '')
}

function own(shape: Shape, key: string): Shape | undefined {
  return Object.hasOwn(shape.properties ?? {}, key) ? shape.properties?.[key] : undefined
}

/** Of a section with kinds, the one that `value` names, or all of them merged where it names none. */
export function variant(shape: Shape, value: unknown): Shape {
  if (!shape.oneOf) return shape
  const kind = (value as { kind?: unknown } | undefined)?.kind
  const named = shape.oneOf.find(branch => branch.properties?.kind?.const === kind)
  if (named) return named
  const properties = Object.assign({}, ...shape.oneOf.map(branch => branch.properties))
  const kinds = shape.oneOf.map(branch => branch.properties?.kind?.const)
  return { type: 'object', properties: { ...properties, kind: { type: 'string', enum: kinds } } }
}

/** What the schema has at a path, given the values found (they choose among kinds). */
export function shapeAt(path: KeyPath, root: unknown): Shape | undefined {
  let shape: Shape | undefined = variant(configShape, root)
  let value = root
  for (const key of path) {
    shape = typeof key === 'number' ? (shape.prefixItems?.[key] ?? shape.items) : own(shape, key)
    if (!shape) return undefined
    value = (value as Record<string | number, unknown> | undefined)?.[key]
    shape = variant(shape, value)
  }
  return shape
}

function range(shape: Shape): string {
  const low =
    shape.exclusiveMinimum !== undefined
      ? `above ${shape.exclusiveMinimum}`
      : shape.minimum !== undefined && shape.minimum > Number.MIN_SAFE_INTEGER
        ? shape.minimum
        : undefined
  const high =
    shape.exclusiveMaximum !== undefined
      ? `below ${shape.exclusiveMaximum}`
      : shape.maximum !== undefined && shape.maximum < Number.MAX_SAFE_INTEGER
        ? shape.maximum
        : undefined
  if (low === undefined && high === undefined) return ''
  if (typeof low === 'number' && typeof high === 'number') return ` from ${low} to ${high}`
  const lowText = typeof low === 'number' ? `of at least ${low}` : low
  const highText = typeof high === 'number' ? `at most ${high}` : high
  return ` ${[lowText, highText].filter(Boolean).join(' and ')}`
}

/** What may stand there, in words: `a number from 0 to 1`. */
export function expected(shape: Shape): string {
  if (shape.const !== undefined)
    return typeof shape.const === 'string' ? `'${shape.const}'` : String(shape.const)
  if (shape.enum) return `one of ${shape.enum.map(value => `'${value}'`).join(', ')}`
  if (shape.prefixItems) {
    const [first] = shape.prefixItems
    return `a list of ${shape.prefixItems.length}: each ${first ? expected(first) : 'a value'}`
  }
  if (shape.anyOf) return shape.anyOf.map(expected).join(' or ')
  if (shape.items)
    return `a list${shape.minItems ? ` of at least ${shape.minItems}` : ''}: each ${expected(shape.items)}`
  switch (shape.type) {
    case 'integer':
      return `an integer${range(shape)}`
    case 'number':
      return `a number${range(shape)}`
    case 'object':
      return `a section with keys (${Object.keys(shape.properties ?? {}).join(', ')})`
    case 'boolean':
      return 'true or false'
    case 'string':
      if (shape.format === 'uri') return 'an http or https URL'
      if (shape.format?.endsWith('path')) return 'a path'
      if (shape.format === 'broker') return 'HOST:PORT'
      if (shape.format === 'environment-variable') return 'the name of an environment variable'
      if (shape.pattern) return 'a name of letters, digits, dots, hyphens and underscores (at most 100)'
      return shape.minLength ? 'a text that is not empty' : 'a text'
    default:
      return 'another value'
  }
}

/** Every leaf and section: its path and shape, sections before what they hold. Kinds are walked one by one. */
export function* walk(
  shape: Shape = configShape,
  path: readonly string[] = [],
): Generator<[readonly string[], Shape]> {
  for (const branch of shape.oneOf ?? [shape]) {
    for (const [key, child] of Object.entries(branch.properties ?? {})) {
      yield [[...path, key], child]
      yield* walk(child, [...path, key])
    }
  }
}

/** Filters on the fields of records: `batch.number=3`, `verdicts.score!=2`. */
import type { Delivery } from '../../bus/port.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import { type AvroNode, type AvroSchema, loadSchemas, PRIMITIVES } from '../../schemas/load.ts'
import type { Topic } from '../../schemas/types.ts'
import { nearest } from '../config/suggest.ts'

export type RecordFilter = (record: Delivery) => boolean

interface Condition {
  readonly path: readonly string[]
  readonly wanted: string
  readonly negated: boolean
}

/**
 * A filter that all conditions must pass. A path goes through lists: it is enough that one element matches
 * (with `!=`: none may), unless the path names an index (`profile.0.id`). A record that cannot be decoded has
 * no fields and passes no condition. Errors: CONFIG_INVALID for a field that the topic's records do not have.
 */
export function recordFilter(topic: Topic, conditions: readonly string[]): RecordFilter {
  const parsed = conditions.map(parseCondition)
  const schema = parsed.length > 0 ? loadSchemas().get(topic)! : undefined
  for (const [i, { path }] of parsed.entries()) checkPath(topic, schema!, path, conditions[i]!)
  return ({ value }) =>
    parsed.every(
      ({ path, wanted, negated }) => value !== undefined && matches(value, path, wanted) !== negated,
    )
}

function parseCondition(text: string): Condition {
  const [, path, operator, wanted] = /^([^=!]+)(!?=)(.*)$/s.exec(text) ?? []
  if (path === undefined || wanted === undefined)
    throw new GraspError('CONFIG_INVALID', `--where ${text}: expected field=value or field!=value`)
  return { path: path.trim().split('.'), wanted, negated: operator === '!=' }
}

function matches(value: unknown, path: readonly string[], wanted: string): boolean {
  const [head, ...rest] = path
  if (Array.isArray(value)) {
    if (head !== undefined && /^\d+$/.test(head)) return matches(value[Number(head)], rest, wanted)
    return value.some(element => matches(element, path, wanted))
  }
  if (head !== undefined) {
    if (value === null || typeof value !== 'object') return false
    return matches((value as Record<string, unknown>)[head], rest, wanted)
  }
  if (typeof value === 'number') return wanted.trim() !== '' && Number(wanted) === value
  if (value === null || typeof value === 'string' || typeof value === 'boolean')
    return String(value) === wanted
  return false
}

function checkPath(topic: Topic, root: AvroNode, path: readonly string[], text: string): void {
  const named = new Map<string, AvroNode>()
  collect(root, '', named)
  let at: AvroSchema[] = [root]
  for (const [depth, part] of path.entries()) {
    at = at.flatMap(schema => open(schema, named))
    if (/^\d+$/.test(part) && at.some(isList)) {
      at = at.filter(isList).map(node => node.items!)
      continue
    }
    at = at.flatMap(schema => elements(schema, named))
    const fields = at.flatMap(schema =>
      typeof schema === 'object' && 'fields' in schema ? schema.fields! : [],
    )
    const found = fields.filter(({ name }) => name === part)
    if (found.length === 0) {
      const names = fields.map(({ name }) => name)
      const near = nearest(part, names)
      const where = depth === 0 ? topic : `${path.slice(0, depth).join('.')} of ${topic}`
      const hint =
        names.length === 0
          ? 'it has no fields'
          : near
            ? `did you mean ${near}?`
            : `fields: ${names.join(', ')}`
      throw new GraspError(
        'CONFIG_INVALID',
        `--where ${text}: there is no field '${part}' in ${where}; ${hint}`,
      )
    }
    at = found.map(({ type }) => type)
  }
}

const isList = (schema: AvroSchema): schema is AvroNode =>
  typeof schema === 'object' && 'items' in schema && schema.items !== undefined

/** The types that a schema stands for: branches of unions, and records by their names. */
function open(schema: AvroSchema, named: ReadonlyMap<string, AvroNode>): AvroSchema[] {
  if (Array.isArray(schema)) return schema.flatMap(branch => open(branch, named))
  if (typeof schema === 'string') return [named.get(schema) ?? schema]
  return typeof schema.type === 'object' ? open(schema.type, named) : [schema]
}

function elements(schema: AvroSchema, named: ReadonlyMap<string, AvroNode>): AvroSchema[] {
  return isList(schema) ? open(schema.items!, named).flatMap(inner => elements(inner, named)) : [schema]
}

/** Records are written out where they are first used, and named afterwards. */
function collect(schema: AvroSchema, namespace: string, named: Map<string, AvroNode>): void {
  if (Array.isArray(schema)) for (const branch of schema) collect(branch, namespace, named)
  if (typeof schema === 'string' || Array.isArray(schema)) return
  const inner = schema.namespace ?? namespace
  if (schema.name !== undefined) {
    named.set(schema.name, schema)
    named.set(`${inner}.${schema.name}`, schema)
  }
  for (const field of schema.fields ?? []) collect(field.type, inner, named)
  if (schema.items !== undefined) collect(schema.items, inner, named)
  if (typeof schema.type === 'object' || !PRIMITIVES.has(schema.type)) {
    if (typeof schema.type === 'object') collect(schema.type, inner, named)
  }
}

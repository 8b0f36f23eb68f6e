/**
 * Reads the .avsc files: one a topic in this folder, shared records in `parts/`. Files refer to each other
 * by full name (`grasp.Aspect`); loading inlines each referred record where it is first used, so that every
 * topic has one self-contained schema, as Avro wants it.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describeError, GraspError } from '../errors/grasp-error.ts'

export type AvroSchema = string | AvroSchema[] | AvroNode

/** A schema in object form, as it stands in an .avsc file. */
export interface AvroNode {
  readonly type: AvroSchema
  readonly name?: string
  readonly namespace?: string
  readonly doc?: string
  readonly fields?: readonly AvroField[]
  readonly items?: AvroSchema
  readonly values?: AvroSchema
  readonly symbols?: readonly string[]
  readonly size?: number
}

export interface AvroField {
  readonly name: string
  readonly type: AvroSchema
  readonly doc?: string
  readonly default?: unknown
}

export interface AvroFiles {
  /** Topic name → the record of its file, references unresolved. */
  readonly topics: ReadonlyMap<string, AvroNode>
  /** Full name → record, of the topics and the shared parts. */
  readonly named: ReadonlyMap<string, AvroNode>
}

export const PRIMITIVES: ReadonlySet<string> = new Set([
  'null',
  'boolean',
  'int',
  'long',
  'float',
  'double',
  'bytes',
  'string',
])

/** Where the .avsc files are: beside this file, in a checkout as in a build. */
export function schemaDirectory(): string {
  return fileURLToPath(new URL('.', import.meta.url))
}

/** Reads every .avsc file. Errors: DATA_INVALID naming the file. */
export function readSchemaFiles(directory = schemaDirectory()): AvroFiles {
  const topics = new Map<string, AvroNode>()
  const named = new Map<string, AvroNode>()
  const add = (path: string): AvroNode => {
    const record = readRecord(path)
    const name = fullName(record)
    if (named.has(name))
      throw new GraspError('DATA_INVALID', `${path}: ${name} is defined in another file too`)
    named.set(name, record)
    return record
  }
  for (const file of avscFiles(directory))
    topics.set(file.slice(0, -'.avsc'.length), add(join(directory, file)))
  const parts = join(directory, 'parts')
  for (const file of existsSync(parts) ? avscFiles(parts) : []) add(join(parts, file))
  return { topics, named }
}

/** One self-contained schema a topic. Errors: DATA_INVALID for a reference that no file defines. */
export function loadSchemas(directory = schemaDirectory()): ReadonlyMap<string, AvroNode> {
  const files = readSchemaFiles(directory)
  return new Map([...files.topics].map(([topic, record]) => [topic, inline(record, files.named)]))
}

/** `namespace.name` of a named type. */
export function fullName(node: AvroNode, enclosing = ''): string {
  const name = node.name ?? ''
  const namespace = node.namespace ?? enclosing
  return name.includes('.') || namespace === '' ? name : `${namespace}.${name}`
}

function inline(root: AvroNode, named: ReadonlyMap<string, AvroNode>): AvroNode {
  const defined = new Set<string>()
  const visit = (schema: AvroSchema, namespace: string): AvroSchema => {
    if (Array.isArray(schema)) return schema.map(branch => visit(branch, namespace))
    if (typeof schema === 'string') {
      if (PRIMITIVES.has(schema)) return schema
      const name = schema.includes('.') || namespace === '' ? schema : `${namespace}.${schema}`
      if (defined.has(name)) return name
      const record = named.get(name)
      if (!record)
        throw new GraspError(
          'DATA_INVALID',
          `schema ${fullName(root)} refers to ${name}, which no .avsc file defines`,
        )
      return visitNode(record, namespace)
    }
    return visitNode(schema, namespace)
  }
  const visitNode = (node: AvroNode, namespace: string): AvroNode => {
    const inner = node.namespace ?? namespace
    if (node.name !== undefined) defined.add(fullName(node, namespace))
    return {
      ...node,
      ...(node.fields && {
        fields: node.fields.map(field => ({ ...field, type: visit(field.type, inner) })),
      }),
      ...(node.items !== undefined && { items: visit(node.items, inner) }),
      ...(node.values !== undefined && { values: visit(node.values, inner) }),
    }
  }
  return visitNode(root, '')
}

function avscFiles(directory: string): string[] {
  return readdirSync(directory)
    .filter(file => file.endsWith('.avsc'))
    .sort()
}

function readRecord(path: string): AvroNode {
  try {
    const record = JSON.parse(readFileSync(path, 'utf8')) as AvroNode
    if (record.type !== 'record' || !record.name || !record.fields)
      throw new Error('expected one Avro record')
    return record
  } catch (cause) {
    throw new GraspError('DATA_INVALID', `${path}: ${describeError(cause)}`, { cause })
  }
}

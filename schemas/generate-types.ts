/**
 * Writes `types.ts`, the TypeScript side of the .avsc files: `npm run schemas:types`. With `--check`
 * (`npm run schemas:check`) it writes nothing and fails when the file does not follow from the schemas.
 * A folder may be named; it is the project's `schemas/` otherwise.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { GraspError } from '../errors/grasp-error.ts'
import { type AvroFiles, type AvroNode, type AvroSchema, readSchemaFiles, schemaDirectory } from './load.ts'

const WIDTH = 110

const PRIMITIVE_TYPES: Readonly<Record<string, string>> = {
  null: 'null',
  boolean: 'boolean',
  int: 'number',
  long: 'number',
  float: 'number',
  double: 'number',
  bytes: 'Uint8Array',
  string: 'string',
}

/** The text of `types.ts`, in the project's format. */
export function generateTypes(files: AvroFiles): string {
  const interfaces = new Map<string, string>()
  for (const record of files.named.values()) describeRecord(record, interfaces)
  const names = [...interfaces.keys()].sort()
  const topics = [...files.topics].map(([topic, record]) => ({ topic, name: shortName(record.name ?? '') }))
  return [
    '// Generated from the .avsc files by `npm run schemas:types`; do not edit.\n',
    ...names.map(name => interfaces.get(name)!),
    '/** The record of each topic. */\n' +
      `export interface Records {\n${topics.map(({ topic, name }) => `  ${topic}: ${name}\n`).join('')}}\n`,
    'export type Topic = keyof Records\n',
    list(
      'export const TOPICS: readonly Topic[] = ',
      topics.map(({ topic }) => `'${topic}'`),
    ),
  ].join('\n')
}

function describeRecord(record: AvroNode, interfaces: Map<string, string>): string {
  const name = shortName(record.name ?? '')
  const fields = (record.fields ?? []).map(field => {
    const type = typeOf(field.type, interfaces)
    return `${doc(field.doc, '  ')}  ${field.name}: ${type}\n`
  })
  const text = `${doc(record.doc, '')}export interface ${name} {${fields.length > 0 ? '\n' : ''}${fields.join('')}}\n`
  const known = interfaces.get(name)
  if (known !== undefined && known !== text) {
    throw new GraspError('DATA_INVALID', `two different Avro records are called ${name}: rename one`)
  }
  interfaces.set(name, text)
  return name
}

function typeOf(schema: AvroSchema, interfaces: Map<string, string>): string {
  if (Array.isArray(schema)) {
    const types = schema.map(branch => typeOf(branch, interfaces))
    // The value comes first and `null` last, as one writes it by hand.
    return [...new Set([...types.filter(type => type !== 'null'), ...types])].join(' | ')
  }
  if (typeof schema === 'string') return PRIMITIVE_TYPES[schema] ?? shortName(schema)
  switch (schema.type) {
    case 'record':
      return describeRecord(schema, interfaces)
    case 'array': {
      const items = typeOf(schema.items!, interfaces)
      return items.includes(' | ') ? `readonly (${items})[]` : `readonly ${items}[]`
    }
    case 'map':
      return `Readonly<Record<string, ${typeOf(schema.values!, interfaces)}>>`
    case 'enum':
      return schema.symbols!.map(symbol => `'${symbol}'`).join(' | ')
    case 'fixed':
      return 'Uint8Array'
    default:
      return typeOf(schema.type, interfaces)
  }
}

function doc(text: string | undefined, indent: string): string {
  return text === undefined ? '' : `${indent}/** ${text.replaceAll('*/', '*\\/')} */\n`
}

/** An array literal, broken where the formatter breaks it. */
function list(start: string, items: readonly string[]): string {
  const line = `${start}[${items.join(', ')}]`
  return line.length <= WIDTH ? `${line}\n` : `${start}[\n${items.map(item => `  ${item},\n`).join('')}]\n`
}

function shortName(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1)
}

function main(args: readonly string[]): number {
  const directory = args.find(arg => !arg.startsWith('--')) ?? schemaDirectory()
  const path = join(directory, 'types.ts')
  const wanted = generateTypes(readSchemaFiles(directory))
  const present = readIfThere(path)
  if (args.includes('--check')) {
    if (present === wanted) return 0
    const state = present === undefined ? 'is missing' : 'does not follow from the .avsc files any more'
    console.error(`${path} ${state}: run \`npm run schemas:types\` and commit the result`)
    return 1
  }
  if (present !== wanted) writeFileSync(path, wanted)
  return 0
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = main(process.argv.slice(2))

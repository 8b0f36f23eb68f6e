/**
 * Whether records that an older schema wrote can be read with a newer one (backward compatibility), and where
 * not: Avro's own resolution decides, this finds the fields that it stumbled over.
 */
import type { Schema, Type } from 'avsc'
import avro from 'avsc'
import { describeError } from '../errors/grasp-error.ts'
import type { AvroSchema } from './load.ts'
import type { Release } from './released.ts'

/** What hinders, a sentence for each field; empty where nothing does. */
export function incompatibilities(writer: AvroSchema, reader: AvroSchema): string[] {
  const type = (schema: AvroSchema) => avro.Type.forSchema(schema as Schema)
  return differences(type(writer), type(reader), '', new Set())
}

/** What of a release can no longer be read: `topic questions, field profile[].at: …`. */
export function unreadable(release: Release, present: ReadonlyMap<string, AvroSchema>): string[] {
  return Object.entries(release.schemas).flatMap(([topic, writer]) => {
    const reader = present.get(topic)
    if (reader === undefined) return [`topic ${topic}: it is gone, but version ${release.version} wrote it`]
    return incompatibilities(writer, reader).map(text => `topic ${topic}, ${text}`)
  })
}

function differences(writer: Type, reader: Type, path: string, seen: Set<string>): string[] {
  const fault = resolutionFault(writer, reader)
  if (fault === undefined) return []
  const inner = innerDifferences(writer, reader, path, seen)
  if (inner.length > 0) return inner
  return [`${path === '' ? 'the record' : `field ${path}`}: ${fault}`]
}

/** Why a type cannot read what another wrote, in words of the schemas; undefined where it can. */
function resolutionFault(writer: Type, reader: Type): string | undefined {
  try {
    reader.createResolver(writer)
    return undefined
  } catch (error) {
    const [was, is] = [word(writer), word(reader)]
    return was === is ? describeError(error) : `was ${was} and is ${is}, which cannot read it`
  }
}

const { types } = avro

function innerDifferences(writer: Type, reader: Type, path: string, seen: Set<string>): string[] {
  if (writer instanceof types.RecordType && reader instanceof types.RecordType) {
    // A record may hold itself.
    const pair = `${writer.name} ${reader.name}`
    if (writer.name !== reader.name || seen.has(pair)) return []
    seen.add(pair)
    const old = new Map(writer.fields.map(field => [field.name, field]))
    return reader.fields.flatMap(field => {
      const name = path === '' ? field.name : `${path}.${field.name}`
      const found = [field.name, ...field.aliases].map(alias => old.get(alias)).find(Boolean)
      if (found) return differences(found.type, field.type, name, seen)
      if (field.defaultValue() !== undefined) return []
      return [`field ${name}: is new and has no default, so older records lack it; give it one`]
    })
  }
  if (writer instanceof types.ArrayType && reader instanceof types.ArrayType) {
    return differences(writer.itemsType, reader.itemsType, `${path}[]`, seen)
  }
  if (writer instanceof types.MapType && reader instanceof types.MapType) {
    return differences(writer.valuesType as Type, reader.valuesType as Type, `${path}{}`, seen)
  }
  if (writer instanceof types.EnumType && reader instanceof types.EnumType) {
    const gone = writer.symbols.filter(symbol => !reader.symbols.includes(symbol))
    return gone.length === 0 ? [] : [`field ${path}: no longer has the symbol ${gone.join(', ')}`]
  }
  return []
}

/** A type as one writes it in a schema. */
function word(type: Type): string {
  if ('types' in type) return (type.types as Type[]).map(word).join(' or ')
  if (type instanceof types.ArrayType) return `an array of ${word(type.itemsType)}`
  return type.name ?? type.typeName
}

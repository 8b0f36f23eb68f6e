/**
 * The Parsing Canonical Form of a schema (Avro specification, "Transforming into Parsing Canonical Form"):
 * only what a reader needs to parse records, in one spelling, so that equal text means equal encoding.
 */
import { type AvroNode, type AvroSchema, fullName, PRIMITIVES } from './load.ts'

/** `schema` must be self-contained (see `loadSchemas`). */
export function canonicalForm(schema: AvroSchema, namespace = ''): string {
  if (Array.isArray(schema)) return `[${schema.map(branch => canonicalForm(branch, namespace)).join(',')}]`
  if (typeof schema === 'string') {
    const full = PRIMITIVES.has(schema) || schema.includes('.') || namespace === ''
    return JSON.stringify(full ? schema : `${namespace}.${schema}`)
  }
  return canonicalNode(schema, namespace)
}

function canonicalNode(node: AvroNode, namespace: string): string {
  const { type } = node
  if (typeof type !== 'string') return canonicalForm(type, namespace)
  const name = fullName(node, namespace)
  // A named type's own namespace holds for the names inside it, also where it stands in a dotted name.
  const inner = name.includes('.') ? name.slice(0, name.lastIndexOf('.')) : ''
  switch (type) {
    case 'record':
    case 'error': {
      const fields = (node.fields ?? []).map(
        field => `{"name":${JSON.stringify(field.name)},"type":${canonicalForm(field.type, inner)}}`,
      )
      return `{"name":${JSON.stringify(name)},"type":"${type}","fields":[${fields.join(',')}]}`
    }
    case 'enum':
      return `{"name":${JSON.stringify(name)},"type":"enum","symbols":${JSON.stringify(node.symbols ?? [])}}`
    case 'fixed':
      return `{"name":${JSON.stringify(name)},"type":"fixed","size":${Number(node.size)}}`
    case 'array':
      return `{"type":"array","items":${canonicalForm(node.items!, namespace)}}`
    case 'map':
      return `{"type":"map","values":${canonicalForm(node.values!, namespace)}}`
    default:
      return canonicalForm(type, namespace)
  }
}

/**
 * avsc types as this project wants its records: plain objects, `bytes` as Uint8Array with an ArrayBuffer of
 * its own (so that it may be viewed as numbers, kept and transferred), and arrays that cannot be made to
 * allocate more items than the record has bytes.
 */
import type { types as AvroTypes, Schema, Type } from 'avsc'
import avro from 'avsc'
import type { AvroSchema } from '../schemas/load.ts'

const { types } = avro

const SMALL = 4 << 10

/** The part of avsc's cursor that the two types below use; its typings leave it out. */
interface Tap {
  readonly buf: Buffer
  pos: number
  readLong(): number
  writeLong(value: number): void
  skipLong(): void
}

interface Reader {
  _read(tap: Tap): unknown
}

type Hook = (value: unknown, type: unknown) => void

class OwnBytesType extends types.BytesType {
  _check(value: unknown, _flags: unknown, hook?: Hook): boolean {
    const valid = value instanceof Uint8Array
    if (!valid) hook?.(value, this)
    return valid
  }

  _read(tap: Tap): Uint8Array {
    const length = tap.readLong()
    const start = tap.pos
    if (length < 0 || start + length > tap.buf.length) throw new Error('bytes reach beyond the record')
    tap.pos += length
    if (length <= SMALL) {
      return new Uint8Array(new Uint8Array(tap.buf.buffer, tap.buf.byteOffset + start, length))
    }
    // Memory that is not cleared first: what counts for large fields.
    const own = Buffer.allocUnsafeSlow(length)
    tap.buf.copy(own, 0, start, tap.pos)
    return new Uint8Array(own.buffer)
  }

  _write(tap: Tap, value: unknown): void {
    if (!(value instanceof Uint8Array)) throw new Error('invalid "bytes"')
    tap.writeLong(value.length)
    // Running past the end is how avsc learns the size that it needs.
    if (tap.pos + value.length <= tap.buf.length) tap.buf.set(value, tap.pos)
    tap.pos += value.length
  }
}

class BoundedArrayType extends types.ArrayType {
  _read(this: { readonly itemsType: Reader }, tap: Tap): unknown[] {
    const items: unknown[] = []
    for (let count = tap.readLong(); count !== 0; count = tap.readLong()) {
      if (count < 0) {
        count = -count
        tap.skipLong()
      }
      // Every item of the project's schemas takes at least a byte.
      if (!(count <= tap.buf.length - tap.pos)) throw new Error('an array reaches beyond the record')
      for (let i = 0; i < count; i++) items.push(this.itemsType._read(tap))
    }
    return items
  }
}

/** The avsc type of a self-contained schema. */
export function avroType(schema: AvroSchema): Type {
  const records: AvroTypes.RecordType[] = []
  const bytes = new OwnBytesType()
  const type = avro.Type.forSchema(schema as Schema, {
    omitRecordMethods: true,
    typeHook: (part, options) => {
      if (part === 'bytes') return bytes
      if (isNode(part, 'array')) return new BoundedArrayType(part, options)
      return undefined
    },
  })
  collectRecords(type, records)
  // avsc makes records with a constructor for speed; with this prototype they are plain objects all the same.
  for (const record of records) record.recordConstructor.prototype = Object.prototype
  return type
}

function isNode(schema: unknown, type: string): boolean {
  return typeof schema === 'object' && schema !== null && (schema as { type?: unknown }).type === type
}

function collectRecords(type: Type, found: AvroTypes.RecordType[]): void {
  if (type instanceof types.RecordType) {
    if (found.includes(type)) return
    found.push(type)
    for (const field of type.fields) collectRecords(field.type, found)
  } else if (type instanceof types.ArrayType) collectRecords(type.itemsType, found)
  else if (type instanceof types.MapType) collectRecords(type.valuesType as Type, found)
  else if ('types' in type) for (const branch of type.types as Type[]) collectRecords(branch, found)
}

/**
 * What all record formats share: a short header that names the schema a record was written with, then the
 * Avro body. Older records are read through Avro's schema resolution, whose decoders are kept by schema.
 */
import type { Type } from 'avsc'
import { describeError, GraspError } from '../errors/grasp-error.ts'
import { fingerprint, fingerprintText } from '../schemas/fingerprint.ts'
import type { AvroNode } from '../schemas/load.ts'
import type { Records, Topic } from '../schemas/types.ts'
import { avroType } from './avro-types.ts'
import { invalidRecord } from './invalid-record.ts'

/** The header of a format. Schemas are named by whatever text the format likes. */
export interface Framing {
  /** Bytes before the body. */
  readonly headerSize: number

  /** The header of a topic's present schema, whose name is `id`. */
  present(topic: string, schema: AvroNode): { readonly id: string; readonly header: Uint8Array }

  /** The name of the schema that a record was written with. Errors: RECORD_UNDECODABLE. */
  writtenWith(topic: string, payload: Uint8Array): string

  /** That schema, as JSON. Errors: SCHEMA_UNKNOWN. */
  schema(topic: string, id: string): string
}

export interface FramedCodec {
  /** Fingerprint and JSON of each topic's present schema. */
  readonly schemas: ReadonlyMap<Topic, { readonly fingerprint: string; readonly json: string }>
  encode<T extends Topic>(topic: T, value: Records[T], allocate?: (size: number) => Uint8Array): Uint8Array
  isCurrent(topic: Topic, payload: Uint8Array): boolean
  /** Whether a decoder for the record is at hand. Errors: RECORD_UNDECODABLE. */
  knows(topic: Topic, payload: Uint8Array): boolean
  decode<T extends Topic>(topic: T, payload: Uint8Array): Records[T]
}

/** Larger scratch buffers are not kept. */
const SCRATCH_LIMIT = 16 << 20
const SCRATCH_START = 64 << 10

interface Entry {
  readonly type: Type
  readonly id: string
  readonly header: Uint8Array
  readonly fingerprint: string
  readonly json: string
  /** Decoders by the writer's schema. */
  readonly decoders: Map<string, (payload: Buffer) => unknown>
}

export function createFramedCodec(framing: Framing, schemas: ReadonlyMap<string, AvroNode>): FramedCodec {
  const { headerSize } = framing
  const entries = new Map([...schemas].map(([topic, schema]) => [topic, entryOf(framing, topic, schema)]))
  let scratch = Buffer.allocUnsafeSlow(SCRATCH_START)

  const entry = (topic: string): Entry => {
    const found = entries.get(topic)
    if (!found) throw new GraspError('RECORD_INVALID', `there is no topic ${topic}`)
    return found
  }

  /** Encodes behind the header into the scratch buffer, growing it as needed; gives the end. */
  const write = (type: Type, value: unknown): number => {
    for (;;) {
      const end = type.encode(value, scratch, headerSize)
      if (end >= 0) return end
      scratch = Buffer.allocUnsafeSlow(scratch.length - end)
    }
  }

  /** Nearly every record was written with the present schema. */
  const idOf = (topic: string, { header, id }: Entry, payload: Uint8Array): string =>
    startsWith(payload, header) ? id : framing.writtenWith(topic, payload)

  return {
    schemas: new Map(
      [...entries].map(([topic, { fingerprint, json }]) => [topic as Topic, { fingerprint, json }]),
    ),

    encode(topic, value, allocate = size => new Uint8Array(size)) {
      const { type, header } = entry(topic)
      let end: number
      try {
        end = write(type, value)
      } catch (cause) {
        throw invalidRecord(topic, type, value, cause)
      }
      scratch.set(header)
      const bytes = allocate(end)
      bytes.set(scratch.subarray(0, end))
      if (scratch.length > SCRATCH_LIMIT) scratch = Buffer.allocUnsafeSlow(SCRATCH_START)
      return bytes
    },

    isCurrent: (topic, payload) => startsWith(payload, entry(topic).header),

    knows(topic, payload) {
      const reader = entry(topic)
      return reader.decoders.has(idOf(topic, reader, payload))
    },

    decode(topic, payload) {
      const reader = entry(topic)
      const id = idOf(topic, reader, payload)
      let decode = reader.decoders.get(id)
      if (!decode) {
        decode = resolve(topic, reader, id, framing)
        reader.decoders.set(id, decode)
      }
      const bytes = Buffer.isBuffer(payload)
        ? payload
        : Buffer.from(payload.buffer, payload.byteOffset, payload.length)
      try {
        return decode(bytes) as Records[typeof topic]
      } catch (cause) {
        throw new GraspError('RECORD_UNDECODABLE', `damaged record of ${topic}: ${describeError(cause)}`, {
          cause,
        })
      }
    },
  }
}

function entryOf(framing: Framing, topic: string, schema: AvroNode): Entry {
  const type = avroType(schema)
  const { id, header } = framing.present(topic, schema)
  const decoders = new Map([[id, bodyDecoder(type, framing.headerSize)]])
  const json = JSON.stringify(schema)
  return { type, id, header, fingerprint: fingerprintText(fingerprint(schema)), json, decoders }
}

function startsWith(payload: Uint8Array, header: Uint8Array): boolean {
  for (let i = 0; i < header.length; i++) if (payload[i] !== header[i]) return false
  return true
}

function resolve(topic: string, reader: Entry, id: string, framing: Framing): (payload: Buffer) => unknown {
  const json = framing.schema(topic, id)
  try {
    const resolver = reader.type.createResolver(avroType(JSON.parse(json) as AvroNode))
    return bodyDecoder(reader.type, framing.headerSize, resolver)
  } catch (cause) {
    throw new GraspError(
      'SCHEMA_UNKNOWN',
      `a record of ${topic} was written with schema ${id}, which does not resolve to the present one ` +
        `(${reader.id}): ${describeError(cause)}`,
      { cause },
    )
  }
}

function bodyDecoder(
  type: Type,
  start: number,
  resolver?: ReturnType<Type['createResolver']>,
): (payload: Buffer) => unknown {
  return payload => {
    const { value, offset } = type.decode(payload, start, resolver)
    if (offset === payload.length) return value
    throw new Error(offset < 0 ? 'it ends too early' : `${payload.length - offset} bytes follow its end`)
  }
}

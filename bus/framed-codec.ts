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
import type { Codec } from './codec.ts'
import { invalidRecord } from './invalid-record.ts'

/** A topic's present schema. */
export interface PresentSchema {
  /** 16 hex digits. */
  readonly fingerprint: string
  readonly json: string
}

/** The header of a format. Schemas are named by whatever text the format likes. */
export interface Framing {
  /** Bytes before the body. */
  readonly headerSize: number

  /** The header of records written now; undefined where their schema has no name yet, so that none can be. */
  header(topic: string, present: PresentSchema): Uint8Array | undefined

  /** The name of the schema that a record was written with. Errors: RECORD_UNDECODABLE. */
  writtenWith(topic: string, payload: Uint8Array): string

  /** That schema, as JSON. Errors: SCHEMA_UNKNOWN. */
  schema(topic: string, id: string, present: PresentSchema): string
}

/** Larger records are written to where they are to be at once: measured first, which copies nothing. */
const SCRATCH = 256 << 10

type Decode = (payload: Buffer) => unknown

interface Entry {
  readonly type: Type
  readonly present: PresentSchema
  /** Reads what was written with the present schema. */
  readonly decode: Decode
  /** Decoders by the writer's schema. */
  readonly decoders: Map<string, Decode>
}

export function createFramedCodec(framing: Framing, schemas: ReadonlyMap<string, AvroNode>): Codec {
  const { headerSize } = framing
  const entries = new Map([...schemas].map(([topic, schema]) => [topic, entryOf(schema, headerSize)]))
  const scratch = Buffer.allocUnsafeSlow(SCRATCH)

  const entry = (topic: string): Entry => {
    const found = entries.get(topic)
    if (!found) throw new GraspError('RECORD_INVALID', `there is no topic ${topic}`)
    return found
  }

  /** The body behind room for the header. */
  const write = (type: Type, value: unknown, allocate: (size: number) => Uint8Array): Uint8Array => {
    const end = type.encode(value, scratch, headerSize)
    if (end >= 0) {
      const bytes = allocate(end)
      bytes.set(scratch.subarray(0, end))
      return bytes
    }
    // By as much as it did not fit.
    const bytes = allocate(scratch.length - end)
    type.encode(value, asBuffer(bytes), headerSize)
    return bytes
  }

  const isCurrent = (topic: string, { present }: Entry, payload: Uint8Array): boolean => {
    const header = framing.header(topic, present)
    return header !== undefined && startsWith(payload, header)
  }

  const decoder = (topic: string, reader: Entry, payload: Uint8Array): Decode => {
    // Nearly every record was written with the present schema.
    if (isCurrent(topic, reader, payload)) return reader.decode
    const id = framing.writtenWith(topic, payload)
    let decode = reader.decoders.get(id)
    if (!decode) {
      decode = resolve(topic, reader, id, framing)
      reader.decoders.set(id, decode)
    }
    return decode
  }

  return {
    schemas: new Map([...entries].map(([topic, { present }]) => [topic as Topic, present])),

    encode(topic, value, allocate = size => new Uint8Array(size)) {
      const { type, present } = entry(topic)
      const header = framing.header(topic, present)
      if (!header) {
        throw new GraspError(
          'LOG_UNAVAILABLE',
          `the schema of ${topic} has to be registered before it is used`,
        )
      }
      try {
        const bytes = write(type, value, allocate)
        bytes.set(header)
        return bytes
      } catch (cause) {
        throw invalidRecord(topic, type, value, cause)
      }
    },

    isCurrent: (topic, payload) => isCurrent(topic, entry(topic), payload),

    decode(topic, payload) {
      const decode = decoder(topic, entry(topic), payload)
      try {
        return decode(asBuffer(payload)) as Records[typeof topic]
      } catch (cause) {
        throw new GraspError('RECORD_UNDECODABLE', `damaged record of ${topic}: ${describeError(cause)}`, {
          cause,
        })
      }
    },
  }
}

function entryOf(schema: AvroNode, headerSize: number): Entry {
  const type = avroType(schema)
  const present = { fingerprint: fingerprintText(fingerprint(schema)), json: JSON.stringify(schema) }
  return { type, present, decode: bodyDecoder(type, headerSize), decoders: new Map() }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

function startsWith(payload: Uint8Array, header: Uint8Array): boolean {
  for (let i = 0; i < header.length; i++) if (payload[i] !== header[i]) return false
  return true
}

function resolve(topic: string, { type, present, decode }: Entry, id: string, framing: Framing): Decode {
  const json = framing.schema(topic, id, present)
  try {
    const writer = JSON.parse(json) as AvroNode
    if (fingerprintText(fingerprint(writer)) === present.fingerprint) return decode
    return bodyDecoder(type, framing.headerSize, type.createResolver(avroType(writer)))
  } catch (cause) {
    throw new GraspError(
      'SCHEMA_UNKNOWN',
      `a record of ${topic} was written with schema ${id}, which does not resolve to the present one ` +
        `(${present.fingerprint}): ${describeError(cause)}`,
      { cause },
    )
  }
}

function bodyDecoder(type: Type, start: number, resolver?: ReturnType<Type['createResolver']>): Decode {
  return payload => {
    const { value, offset } = type.decode(payload, start, resolver)
    if (offset === payload.length) return value
    throw new Error(offset < 0 ? 'it ends too early' : `${payload.length - offset} bytes follow its end`)
  }
}

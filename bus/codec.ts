/**
 * Records to bytes and back: Avro's single-object encoding (C3 01, the schema's CRC-64-AVRO fingerprint as
 * 8 little-endian bytes, then the body). Any reader finds the schema that a record was written with by its
 * fingerprint, and reads older records through Avro's schema resolution.
 */
import { inspect } from 'node:util'
import type { Type } from 'avsc'
import { describeError, GraspError } from '../errors/grasp-error.ts'
import { fingerprint, fingerprintText } from '../schemas/fingerprint.ts'
import { type AvroNode, loadSchemas } from '../schemas/load.ts'
import type { Records, Topic } from '../schemas/types.ts'
import { avroType } from './avro-types.ts'

/** Where the schemas that records were written with are kept: JSON text by fingerprint (16 hex digits). */
export interface SchemaStore {
  get(fingerprint: string): string | undefined
}

export interface Codec {
  /** The present schema of each topic, to be kept where readers will look for it. */
  readonly schemas: ReadonlyMap<Topic, { readonly fingerprint: string; readonly json: string }>

  /**
   * The encoded record, in the memory that `allocate` gives for its size (its own unless told). Errors:
   * RECORD_INVALID naming topic, field and value.
   */
  encode<T extends Topic>(topic: T, value: Records[T], allocate?: (size: number) => Uint8Array): Uint8Array

  /** Whether the record was written with the topic's present schema, so that decoding looks nothing up. */
  isCurrent(topic: Topic, payload: Uint8Array): boolean

  /**
   * Errors: SCHEMA_UNKNOWN for a fingerprint that no schema is known for, or a schema that does not resolve
   * to the topic's; RECORD_UNDECODABLE for anything else.
   */
  decode<T extends Topic>(topic: T, payload: Uint8Array): Records[T]
}

const MARKER_0 = 0xc3
const MARKER_1 = 0x01
const HEADER = 10
/** Larger scratch buffers are not kept. */
const SCRATCH_LIMIT = 16 << 20

type Resolver = ReturnType<Type['createResolver']>

interface Entry {
  readonly type: Type
  readonly fingerprint: string
  readonly header: Uint8Array
  readonly json: string
  /** Decoders by the writer's fingerprint. */
  readonly decoders: Map<string, (payload: Buffer) => unknown>
}

export function createCodec(
  store: SchemaStore = { get: () => undefined },
  schemas: ReadonlyMap<string, AvroNode> = loadSchemas(),
): Codec {
  const entries = new Map<string, Entry>([...schemas].map(([topic, schema]) => [topic, entryOf(schema)]))
  let scratch = Buffer.allocUnsafeSlow(64 << 10)

  const entry = (topic: string): Entry => {
    const found = entries.get(topic)
    if (!found) throw new GraspError('RECORD_INVALID', `there is no topic ${topic}`)
    return found
  }

  /** Encodes at `HEADER` into the scratch buffer, growing it as needed; gives the end. */
  const write = (type: Type, value: unknown): number => {
    for (;;) {
      const end = type.encode(value, scratch, HEADER)
      if (end >= 0) return end
      scratch = Buffer.allocUnsafeSlow(scratch.length - end)
    }
  }

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
        throw invalid(topic, type, value, cause)
      }
      scratch.set(header)
      const bytes = allocate(end)
      bytes.set(scratch.subarray(0, end))
      if (scratch.length > SCRATCH_LIMIT) scratch = Buffer.allocUnsafeSlow(64 << 10)
      return bytes
    },

    isCurrent: (topic, payload) => startsWith(payload, entry(topic).header),

    decode(topic, payload) {
      const reader = entry(topic)
      // Nearly every record was written with the present schema.
      const id = startsWith(payload, reader.header) ? reader.fingerprint : writtenWith(topic, payload)
      let decode = reader.decoders.get(id)
      if (!decode) {
        decode = resolve(topic, reader, id, store)
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

function entryOf(schema: AvroNode): Entry {
  const type = avroType(schema)
  const value = fingerprint(schema)
  const header = new Uint8Array(HEADER)
  header[0] = MARKER_0
  header[1] = MARKER_1
  new DataView(header.buffer).setBigUint64(2, value, true)
  const id = fingerprintText(value)
  const decoders = new Map([[id, (payload: Buffer): unknown => decodeBody(type, payload)]])
  return { type, fingerprint: id, header, json: JSON.stringify(schema), decoders }
}

function startsWith(payload: Uint8Array, header: Uint8Array): boolean {
  for (let i = 0; i < header.length; i++) if (payload[i] !== header[i]) return false
  return true
}

/** The fingerprint that the payload names. */
function writtenWith(topic: string, payload: Uint8Array): string {
  if (payload.length < HEADER || payload[0] !== MARKER_0 || payload[1] !== MARKER_1) {
    const start = Buffer.from(payload.subarray(0, 4)).toString('hex')
    const found = payload.length === 0 ? 'nothing' : `${payload.length} bytes starting with ${start}`
    throw new GraspError(
      'RECORD_UNDECODABLE',
      `not a record of ${topic}: expected an Avro single-object (c301, fingerprint, body), found ${found}`,
    )
  }
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length)
  return fingerprintText(view.getBigUint64(2, true))
}

function resolve(topic: string, reader: Entry, id: string, store: SchemaStore): (payload: Buffer) => unknown {
  const json = store.get(id)
  if (json === undefined) {
    throw new GraspError(
      'SCHEMA_UNKNOWN',
      `a record of ${topic} was written with schema ${id}, which this log does not hold and which is not ` +
        `the present one (${reader.fingerprint}): read it with the version that wrote it`,
    )
  }
  try {
    const writer = avroType(JSON.parse(json) as AvroNode)
    const resolver = reader.type.createResolver(writer)
    return payload => decodeBody(reader.type, payload, resolver)
  } catch (cause) {
    throw new GraspError(
      'SCHEMA_UNKNOWN',
      `a record of ${topic} was written with schema ${id}, which does not resolve to the present one ` +
        `(${reader.fingerprint}): ${describeError(cause)}`,
      { cause },
    )
  }
}

function decodeBody(type: Type, payload: Buffer, resolver?: Resolver): unknown {
  const { value, offset } = type.decode(payload, HEADER, resolver)
  if (offset === payload.length) return value
  throw new Error(offset < 0 ? 'it ends too early' : `${payload.length - offset} bytes follow its end`)
}

function invalid(topic: string, type: Type, value: unknown, cause: unknown): GraspError {
  let first: string | undefined
  type.isValid(value, {
    errorHook: (path, part, expected) => {
      first ??= `${fieldPath(path)}: expected ${expectation(expected)}, got ${show(part)}`
    },
  })
  return new GraspError('RECORD_INVALID', `invalid record of ${topic}: ${first ?? describeError(cause)}`, {
    cause,
  })
}

/** `profile[3].text` */
function fieldPath(path: readonly string[]): string {
  const text = path.map(part => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`)).join('')
  return text === '' ? 'the record' : `field ${text.replace(/^\./, '')}`
}

function expectation(type: Type): string {
  if ('types' in type) return (type.types as Type[]).map(expectation).join(' or ')
  return type.typeName
}

function show(value: unknown): string {
  const text = inspect(value, {
    depth: 1,
    breakLength: Number.POSITIVE_INFINITY,
    maxStringLength: 80,
    maxArrayLength: 5,
  })
  return text.length > 120 ? `${text.slice(0, 117)}...` : text
}

/**
 * Records to bytes and back. Here: Avro's single-object encoding (C3 01, the schema's CRC-64-AVRO fingerprint
 * as 8 little-endian bytes, then the body). Any reader finds the schema that a record was written with by its
 * fingerprint, and reads older records through Avro's schema resolution. With a schema registry
 * (`bus/registry/`) records name their schema by the registry's id instead.
 */
import { GraspError } from '../errors/grasp-error.ts'
import { fingerprintText } from '../schemas/fingerprint.ts'
import { type AvroNode, loadSchemas } from '../schemas/load.ts'
import { releasedSchema } from '../schemas/released.ts'
import type { Records, Topic } from '../schemas/types.ts'
import { createFramedCodec, type Framing } from './framed-codec.ts'

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
   * Errors: SCHEMA_UNKNOWN for a schema that is not known, or that does not resolve to the topic's;
   * RECORD_UNDECODABLE for anything else.
   */
  decode<T extends Topic>(topic: T, payload: Uint8Array): Records[T]
}

export const MARKER_0 = 0xc3
const MARKER_1 = 0x01
const HEADER = 10

/**
 * Schemas of older records are looked for in `store`, then among those of earlier releases, which come with the
 * package.
 */
export function createCodec(
  store: SchemaStore = { get: () => undefined },
  schemas: ReadonlyMap<string, AvroNode> = loadSchemas(),
): Codec {
  const headers = new Map<string, Uint8Array>()
  const framing: Framing = {
    headerSize: HEADER,
    header(topic, { fingerprint }) {
      const known = headers.get(topic)
      if (known) return known
      const header = headerOf(fingerprint)
      headers.set(topic, header)
      return header
    },
    writtenWith,
    schema(topic, id, present) {
      const json = store.get(id) ?? releasedSchema(id)
      if (json !== undefined) return json
      throw new GraspError(
        'SCHEMA_UNKNOWN',
        `a record of ${topic} was written with schema ${id}, which this log does not hold and which is not ` +
          `the present one (${present.fingerprint}): read it with the version that wrote it`,
      )
    },
  }
  return createFramedCodec(framing, schemas)
}

function headerOf(fingerprint: string): Uint8Array {
  const header = new Uint8Array(HEADER)
  header[0] = MARKER_0
  header[1] = MARKER_1
  new DataView(header.buffer).setBigUint64(2, BigInt(`0x${fingerprint}`), true)
  return header
}

/** The fingerprint that the payload names. */
function writtenWith(topic: string, payload: Uint8Array): string {
  if (payload.length < HEADER || payload[0] !== MARKER_0 || payload[1] !== MARKER_1) {
    const hint = payload[0] === 0 ? '; if a schema registry wrote it, set log.registry.url' : ''
    throw undecodable(topic, payload, `an Avro single-object (c301, fingerprint, body)`, hint)
  }
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length)
  return fingerprintText(view.getBigUint64(2, true))
}

export function undecodable(topic: string, payload: Uint8Array, expected: string, hint = ''): GraspError {
  const start = Buffer.from(payload.subarray(0, 4)).toString('hex')
  const found = payload.length === 0 ? 'nothing' : `${payload.length} bytes starting with ${start}`
  return new GraspError(
    'RECORD_UNDECODABLE',
    `not a record of ${topic}: expected ${expected}, found ${found}${hint}`,
  )
}

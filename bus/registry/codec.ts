/**
 * Records as Confluent's serialisers write them: a zero, the schema's id in the registry as 4 big-endian bytes,
 * then the Avro body. The subject of a topic's schema is `<topic name>-value`. Single-object records are read too,
 * so that a topic may have begun without a registry.
 */
import { GraspError } from '../../errors/grasp-error.ts'
import { type AvroNode, loadSchemas } from '../../schemas/load.ts'
import type { Topic } from '../../schemas/types.ts'
import { type Codec, createCodec, MARKER_0, undecodable } from '../codec.ts'
import { createFramedCodec, type Framing } from '../framed-codec.ts'
import { LARGEST_ID, type Registry } from './registry.ts'

const MAGIC = 0
const HEADER = 5
/** An id that the registry does not know is asked about again after so many milliseconds. */
const UNKNOWN_MS = 30_000

/** The registry is asked beforehand, so that encoding and decoding themselves wait for nothing. */
export interface RegistryCodec extends Codec {
  /** Registers the schemas of these topics where that is not done. Errors: LOG_MISMATCH, LOG_UNAVAILABLE. */
  prepareToEncode(topics: readonly Topic[]): Promise<void>

  /**
   * Fetches the schema of this record where it is not at hand. What is wrong with the record itself is left to
   * `decode` to say. Errors: LOG_UNAVAILABLE; LOG_MISMATCH where the registry has no schema of this topic at all, so
   * that every record would be condemned for the registry's fault.
   */
  prepareToDecode(topic: Topic, payload: Uint8Array): Promise<void>

  /** Ends what waits for the registry. */
  close(): void
}

export interface RegistryCodecOptions {
  readonly registry: Registry
  /** The name that a topic has in the cluster. */
  readonly topicName: (topic: Topic) => string
  /** The present schemas; the package's unless told. */
  readonly schemas?: ReadonlyMap<string, AvroNode>
}

const READY = Promise.resolve()

export function createRegistryCodec(options: RegistryCodecOptions): RegistryCodec {
  const { registry, topicName, schemas = loadSchemas() } = options
  const headers = new Map<string, Uint8Array>()
  const registering = new Map<Topic, Promise<void>>()
  const fetched = new Map<number, string>()
  const fetching = new Map<number, Promise<void>>()
  /** Ids that the registry did not know, and when it was asked. */
  const unknown = new Map<number, number>()

  const framing: Framing = {
    headerSize: HEADER,
    header: topic => headers.get(topic),
    writtenWith: (topic, payload) => {
      const id = schemaId(payload)
      if (id !== undefined) return String(id)
      throw undecodable(topic, payload, "Confluent's wire format (00, schema id, body)")
    },
    schema: (topic, id) => {
      const json = fetched.get(Number(id))
      if (json !== undefined) return json
      throw new GraspError(
        'SCHEMA_UNKNOWN',
        `a record of ${topic} was written with schema id ${id}, which the schema registry at ${registry.url} ` +
          'does not know: is it the registry that the record was written with?',
      )
    },
  }
  const wire = createFramedCodec(framing, schemas)
  const single = createCodec(undefined, schemas)
  const codecOf = (payload: Uint8Array) => (payload[0] === MARKER_0 ? single : wire)

  const subjectOf = (topic: Topic) => `${topicName(topic)}-value`

  const register = async (topic: Topic): Promise<void> => {
    const schema = wire.schemas.get(topic)
    if (!schema) throw new GraspError('RECORD_INVALID', `there is no topic ${topic}`)
    const id = await registry.register(subjectOf(topic), schema.json)
    const header = new Uint8Array(HEADER)
    header[0] = MAGIC
    new DataView(header.buffer).setUint32(1, id)
    headers.set(topic, header)
    fetched.set(id, schema.json)
  }

  const fetchSchema = async (topic: Topic, id: number): Promise<void> => {
    const found = await registry.schemaOf(subjectOf(topic), id)
    if (found === undefined) throw strangeRegistry(topic, id)
    if (found === 'unknown') unknown.set(id, Date.now())
    else fetched.set(id, found.json)
  }

  const strangeRegistry = (topic: Topic, id: number) =>
    new GraspError(
      'LOG_MISMATCH',
      `the schema registry at ${registry.url} knows neither schema id ${id}, with which a record of ${topic} was ` +
        `written, nor the subject ${subjectOf(topic)}: it is not the registry of this log, or has lost its schemas; ` +
        'bring them back, or correct log.registry.url',
    )

  return {
    schemas: wire.schemas,
    encode: wire.encode,
    isCurrent: (topic, payload) => codecOf(payload).isCurrent(topic, payload),
    decode: (topic, payload) => codecOf(payload).decode(topic, payload),

    async prepareToEncode(topics) {
      const missing = topics.filter(topic => !headers.has(topic))
      await Promise.all(missing.map(topic => once(registering, topic, () => register(topic))))
    },

    prepareToDecode(topic, payload) {
      const id = schemaId(payload)
      // No registry has such an id, and not every one says so when it is asked.
      if (id === undefined || id > LARGEST_ID || fetched.has(id)) return READY
      const asked = unknown.get(id)
      if (asked !== undefined && Date.now() - asked < UNKNOWN_MS) return READY
      return once(fetching, id, () => fetchSchema(topic, id))
    },

    close: () => registry.close(),
  }
}

/** The work under way for a key, or begun now; one that failed may be tried again. */
function once<K>(under: Map<K, Promise<void>>, key: K, work: () => Promise<void>): Promise<void> {
  const present = under.get(key)
  if (present) return present
  const begun = work().finally(() => under.delete(key))
  under.set(key, begun)
  return begun
}

function schemaId(payload: Uint8Array): number | undefined {
  if (payload.length < HEADER || payload[0] !== MAGIC) return undefined
  return new DataView(payload.buffer, payload.byteOffset, payload.length).getUint32(1)
}

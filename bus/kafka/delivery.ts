import { isPerRecord } from '../../errors/grasp-error.ts'
import type { Records, Topic } from '../../schemas/types.ts'
import { DecodedRecord } from '../decoded-record.ts'
import type { Delivery } from '../port.ts'
import type { RawMessage } from './client.ts'
import type { KafkaCodec } from './options.ts'

class KafkaRecord<T extends Topic> extends DecodedRecord<T> {
  readonly #codec: KafkaCodec
  readonly #payload: Uint8Array | undefined

  constructor(
    codec: KafkaCodec,
    topic: T,
    partition: number,
    offset: number,
    key: string,
    timestamp: number,
    value: Records[T],
    payload: Uint8Array | undefined,
  ) {
    super(topic, partition, offset, key, timestamp, value)
    this.#codec = codec
    this.#payload = payload
  }

  /** Encoded again, where that gives the same bytes. */
  get payload(): Uint8Array {
    return this.#payload ?? this.#codec.encode(this.topic, this.value)
  }
}

/**
 * A record of the log as it is handed out; one that cannot be decoded carries the error. It keeps nothing of the
 * answer that it came in, which holds many records.
 */
export function deliver<T extends Topic>(
  codec: KafkaCodec,
  topic: T,
  partition: number,
  message: RawMessage,
): Delivery<T> {
  const encoded = message.value ?? Buffer.alloc(0)
  const offset = Number(message.offset)
  const key = message.key?.toString() ?? ''
  const timestamp = Number(message.timestamp)
  try {
    const payload = codec.isCurrent(topic, encoded) ? undefined : new Uint8Array(encoded)
    const value = codec.decode(topic, encoded)
    return new KafkaRecord(codec, topic, partition, offset, key, timestamp, value, payload)
  } catch (error) {
    if (!isPerRecord(error)) throw error
    return { topic, partition, offset, key, timestamp, payload: new Uint8Array(encoded), error }
  }
}

/** Makes sure that the schemas of these records are known, where they can be. */
export async function prepare(
  codec: KafkaCodec,
  topic: Topic,
  messages: readonly RawMessage[],
  refresh: () => Promise<void>,
): Promise<void> {
  for (const { value } of messages) {
    if (!value || codec.isCurrent(topic, value)) continue
    if (codec.prepareToDecode) await codec.prepareToDecode(topic, value)
    else await refresh()
  }
}

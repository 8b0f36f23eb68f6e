import { isPerRecord } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import type { Delivery } from '../port.ts'
import type { RawMessage } from './client.ts'
import type { KafkaCodec } from './options.ts'

/** Below this a copy costs less than the means to avoid it. */
const SMALL = 4 << 10

/**
 * A record of the log as it is handed out; one that cannot be decoded carries the error. It keeps nothing of the
 * answer that it came in, which holds many records. The payload of all but small records is encoded again when it
 * is asked for, so that a record in flight takes its size once in memory and not twice.
 */
export function deliver<T extends Topic>(
  codec: KafkaCodec,
  topic: T,
  partition: number,
  message: RawMessage,
): Delivery<T> {
  const encoded = message.value ?? Buffer.alloc(0)
  const place = { topic, partition, offset: Number(message.offset) }
  const envelope = { ...place, key: message.key?.toString() ?? '', timestamp: Number(message.timestamp) }
  try {
    const current = codec.isCurrent(topic, encoded)
    const value = codec.decode(topic, encoded)
    if (encoded.length <= SMALL || !current) return { ...envelope, payload: new Uint8Array(encoded), value }
    return {
      ...envelope,
      value,
      get payload() {
        return codec.encode(topic, value)
      },
    }
  } catch (error) {
    if (!isPerRecord(error)) throw error
    return { ...envelope, payload: new Uint8Array(encoded), error }
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

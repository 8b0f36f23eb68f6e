import { isPerRecord } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import type { Codec } from '../codec.ts'
import type { Delivery, Place } from '../port.ts'
import { keyOf, payloadOf, timestampOf } from './entry.ts'
import type { Store } from './store.ts'

/** Below this a copy costs less than the means to avoid it. */
const SMALL = 4 << 10

/**
 * The record at an offset below the end; undefined when `admit`, asked with the size of the encoded record,
 * refuses it. A record that cannot be decoded carries the error instead of a value.
 *
 * The payload of all but small records is read again when it is asked for (the log only grows), so that a
 * record in flight takes its size once in memory and not twice.
 */
export function deliver<T extends Topic>(
  store: Store,
  codec: Codec,
  topic: T,
  partition: number,
  offset: number,
  admit?: (place: Place, bytes: number) => boolean,
): Delivery<T> | undefined {
  const entry = store.entry(topic, partition, offset)
  const encoded = payloadOf(entry)
  if (admit && !admit({ topic, partition, offset }, encoded.length)) return undefined
  const key = keyOf(entry)
  const timestamp = timestampOf(entry)
  // Looking a schema up is another read, which may overwrite the entry.
  const stable = codec.isCurrent(topic, encoded) ? encoded : copyOf(encoded)
  try {
    const value = codec.decode(topic, stable)
    if (encoded.length <= SMALL) {
      return { topic, partition, offset, key, timestamp, payload: copyOf(stable), value }
    }
    return {
      topic,
      partition,
      offset,
      key,
      timestamp,
      value,
      get payload() {
        return copyOf(payloadOf(store.entry(topic, partition, offset)))
      },
    }
  } catch (error) {
    if (!isPerRecord(error)) throw error
    return { topic, partition, offset, key, timestamp, payload: copyOf(stable), error }
  }
}

function copyOf(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes)
}

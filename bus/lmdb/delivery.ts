import { isPerRecord } from '../../errors/grasp-error.ts'
import type { Records, Topic } from '../../schemas/types.ts'
import type { Codec } from '../codec.ts'
import { DecodedRecord } from '../decoded-record.ts'
import type { Delivery, Place } from '../port.ts'
import { keyOf, payloadOf, timestampOf } from './entry.ts'
import type { Store } from './store.ts'

class LmdbRecord<T extends Topic> extends DecodedRecord<T> {
  readonly #store: Store

  constructor(
    store: Store,
    topic: T,
    partition: number,
    offset: number,
    key: string,
    timestamp: number,
    value: Records[T],
  ) {
    super(topic, partition, offset, key, timestamp, value)
    this.#store = store
  }

  /** Read again: the log only grows. */
  get payload(): Uint8Array {
    return this.#store.payload(this)
  }
}

/**
 * The record at an offset below the end; undefined when `admit`, asked with the size of the encoded record,
 * refuses it. A record that cannot be decoded carries the error instead of a value.
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
    return new LmdbRecord(store, topic, partition, offset, key, timestamp, value)
  } catch (error) {
    if (!isPerRecord(error)) throw error
    return { topic, partition, offset, key, timestamp, payload: copyOf(stable), error }
  }
}

function copyOf(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes)
}

/**
 * How a record lies in LMDB, under its offset: timestamp (f64, little-endian), length of the key (u32,
 * little-endian), the key in UTF-8, the encoded record.
 */
const TIMESTAMP = 8
const HEADER = 12

export interface Entry {
  readonly timestamp: number
  readonly key: string
  readonly payload: Uint8Array
}

/** How many bytes to leave free in front of the payload. */
export function entryRoom(key: Uint8Array): number {
  return HEADER + key.length
}

/** Fills in the room in front of the payload; the timestamp follows when the record gets its place. */
export function fillEntry(entry: Uint8Array, key: Uint8Array): void {
  viewOf(entry).setUint32(TIMESTAMP, key.length, true)
  entry.set(key, HEADER)
}

export function stampEntry(entry: Uint8Array, timestamp: number): void {
  viewOf(entry).setFloat64(0, timestamp, true)
}

export function timestampOf(entry: Uint8Array): number {
  return viewOf(entry).getFloat64(0, true)
}

/** Bytes of the encoded record within an entry of `size` bytes. */
export function payloadSize(entry: Uint8Array, size: number): number {
  return size - HEADER - viewOf(entry).getUint32(TIMESTAMP, true)
}

/** The entry's parts; `payload` is a view of `entry`. */
export function readEntry(entry: Uint8Array): Entry {
  const keyLength = viewOf(entry).getUint32(TIMESTAMP, true)
  const key = Buffer.from(entry.buffer, entry.byteOffset + HEADER, keyLength).toString()
  return { timestamp: timestampOf(entry), key, payload: entry.subarray(HEADER + keyLength) }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset)
}

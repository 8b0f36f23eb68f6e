/**
 * How a record lies in LMDB, under its offset: timestamp (f64, little-endian), length of the key (u32,
 * little-endian), the key in UTF-8, the encoded record.
 */
import { allocate } from '../slab.ts'

const KEY_LENGTH = 8
const KEY = 12

/** An entry with its key; `encode` gets a function that makes room for the payload, and fills it. */
export function writeEntry(key: string, encode: (allocate: (size: number) => Uint8Array) => unknown): Buffer {
  const keyLength = Buffer.byteLength(key)
  let entry: Buffer | undefined
  encode(size => {
    entry = allocate(KEY + keyLength + size)
    return entry.subarray(KEY + keyLength)
  })
  entry ??= allocate(KEY + keyLength)
  entry.writeUInt32LE(keyLength, KEY_LENGTH)
  entry.write(key, KEY)
  return entry
}

/** The timestamp follows when the record gets its place. */
export function stampEntry(entry: Buffer, timestamp: number): void {
  entry.writeDoubleLE(timestamp, 0)
}

export function timestampOf(entry: Buffer): number {
  return entry.readDoubleLE(0)
}

export function keyOf(entry: Buffer): string {
  return entry.toString('utf8', KEY, KEY + entry.readUInt32LE(KEY_LENGTH))
}

/** The encoded record, as a view of the entry. */
export function payloadOf(entry: Buffer): Uint8Array {
  return entry.subarray(KEY + entry.readUInt32LE(KEY_LENGTH), entry.length)
}

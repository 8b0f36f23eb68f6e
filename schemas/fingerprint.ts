/**
 * CRC-64-AVRO, the fingerprint that names a schema in Avro's single-object encoding: a 64-bit CRC whose
 * initial value stands for the empty string (Avro specification, "Schema Fingerprints").
 */
import { canonicalForm } from './canonical.ts'
import type { AvroSchema } from './load.ts'

const EMPTY = 0xc15d213aa4d7a795n

const TABLE: readonly bigint[] = Array.from({ length: 256 }, (_, byte) => {
  let value = BigInt(byte)
  for (let bit = 0; bit < 8; bit++) value = (value >> 1n) ^ (value & 1n ? EMPTY : 0n)
  return value
})

/** The fingerprint of a self-contained schema, by its canonical form. */
export function fingerprint(schema: AvroSchema): bigint {
  return crc64(new TextEncoder().encode(canonicalForm(schema)))
}

export function crc64(bytes: Uint8Array): bigint {
  let value = EMPTY
  for (const byte of bytes) value = (value >> 8n) ^ TABLE[Number((value ^ BigInt(byte)) & 0xffn)]!
  return value
}

/** Sixteen hexadecimal digits, the way fingerprints are written and stored. */
export function fingerprintText(value: bigint): string {
  return value.toString(16).padStart(16, '0')
}

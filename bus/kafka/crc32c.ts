/** CRC-32C (Castagnoli, reflected polynomial 82f63b78), eight bytes at a time by tables ("slicing by 8"). */
const POLYNOMIAL = 0x82f63b78

/** `TABLES[k][n]`: the remainder of byte n with k zero bytes behind it. */
const TABLES = Array.from({ length: 8 }, () => new Int32Array(256))
for (let n = 0; n < 256; n++) {
  let remainder = n
  for (let bit = 0; bit < 8; bit++) remainder = (remainder >>> 1) ^ (remainder & 1 ? POLYNOMIAL : 0)
  TABLES[0]![n] = remainder
}
for (let k = 1; k < 8; k++) {
  for (let n = 0; n < 256; n++) {
    const before = TABLES[k - 1]![n]!
    TABLES[k]![n] = TABLES[0]![before & 255]! ^ (before >>> 8)
  }
}
const [T0, T1, T2, T3, T4, T5, T6, T7] = TABLES as [
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
]

const LITTLE_ENDIAN = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1

/** Unsigned. */
export function crc32c(bytes: Uint8Array): number {
  const { length, byteOffset } = bytes
  let crc = -1
  let i = 0
  if (LITTLE_ENDIAN) {
    // Words are read aligned.
    const start = Math.min(length, -byteOffset & 3)
    for (; i < start; i++) crc = T0[(crc ^ bytes[i]!) & 255]! ^ (crc >>> 8)
    const words = ((length - i) >> 3) * 2
    const view = new Int32Array(bytes.buffer, byteOffset + i, words)
    for (let j = 0; j < words; j += 2) {
      const a = crc ^ view[j]!
      const b = view[j + 1]!
      crc =
        T7[a & 255]! ^
        T6[(a >>> 8) & 255]! ^
        T5[(a >>> 16) & 255]! ^
        T4[a >>> 24]! ^
        T3[b & 255]! ^
        T2[(b >>> 8) & 255]! ^
        T1[(b >>> 16) & 255]! ^
        T0[b >>> 24]!
    }
    i += words * 4
  }
  for (; i < length; i++) crc = T0[(crc ^ bytes[i]!) & 255]! ^ (crc >>> 8)
  return ~crc >>> 0
}

/**
 * The partition of a key: murmur2 over its UTF-8 bytes, as Kafka's default partitioner does it, so that a
 * key lands in the same partition whichever log holds the topic.
 */

const SEED = 0x9747b28c
const M = 0x5bd1e995
const R = 24

/** From 0 to `partitions - 1`. */
export function partitionOf(key: string, partitions: number): number {
  return partitions === 1 ? 0 : (murmur2(Buffer.from(key)) & 0x7fffffff) % partitions
}

/** 32-bit murmur2, signed, with Kafka's seed. */
export function murmur2(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const words = bytes.length >> 2
  let hash = SEED ^ bytes.length
  for (let i = 0; i < words; i++) {
    let word = Math.imul(view.getInt32(i * 4, true), M)
    word = Math.imul(word ^ (word >>> R), M)
    hash = Math.imul(hash, M) ^ word
  }
  const rest = bytes.length & 3
  const start = words * 4
  if (rest > 0) {
    for (let i = rest - 1; i >= 0; i--) hash ^= bytes[start + i]! << (8 * i)
    hash = Math.imul(hash, M)
  }
  hash = Math.imul(hash ^ (hash >>> 13), M)
  return (hash ^ (hash >>> 15)) | 0
}

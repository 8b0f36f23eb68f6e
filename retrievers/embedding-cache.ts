/** Vectors by text, the least recently used dropped first, bounded in bytes. */
import { createHash } from 'node:crypto'

/** What an entry costs beside its vector: key, typed array, map slot. */
const OVERHEAD = 300

export class EmbeddingCache {
  readonly #limit: number
  #bytes = 0
  // A Map keeps insertion order, and a hit is inserted anew: the first entry is the least recently used.
  readonly #vectors = new Map<string, Float32Array>()

  /** `limit` in bytes. A vector that alone exceeds it is not kept. */
  constructor(limit: number) {
    this.#limit = limit
  }

  get bytes(): number {
    return this.#bytes
  }

  get(text: string): Float32Array | undefined {
    const key = keyOf(text)
    const vector = this.#vectors.get(key)
    if (!vector) return undefined
    this.#vectors.delete(key)
    this.#vectors.set(key, vector)
    return vector
  }

  set(text: string, vector: Float32Array): void {
    const key = keyOf(text)
    const known = this.#vectors.get(key)
    if (known) {
      this.#vectors.delete(key)
      this.#bytes -= size(known)
    }
    this.#vectors.set(key, vector)
    this.#bytes += size(vector)
    for (const [oldest, dropped] of this.#vectors) {
      if (this.#bytes <= this.#limit) break
      this.#vectors.delete(oldest)
      this.#bytes -= size(dropped)
    }
  }
}

function size(vector: Float32Array): number {
  return vector.byteLength + OVERHEAD
}

/** Posts can be long and the cache large, so it keeps hashes, not texts. */
function keyOf(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}

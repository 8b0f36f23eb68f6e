import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { EmbeddingCache } from '../../retrievers/embedding-cache.ts'

const vector = (value: number) => new Float32Array(100).fill(value)
/** Bytes of one entry: 100 floats and the overhead. */
const ENTRY = 700

describe('the embedding cache', () => {
  it('drops what was used least recently, by bytes', () => {
    const cache = new EmbeddingCache(2 * ENTRY)
    cache.set('a', vector(1))
    cache.set('b', vector(2))
    assert.equal(cache.get('a')![0], 1)
    cache.set('c', vector(3))
    assert.equal(cache.get('b'), undefined)
    assert.equal(cache.get('a')![0], 1)
    assert.equal(cache.get('c')![0], 3)
    assert.equal(cache.bytes, 2 * ENTRY)
  })

  it('counts a text once however often it is set', () => {
    const cache = new EmbeddingCache(2 * ENTRY)
    cache.set('a', vector(1))
    cache.set('a', vector(2))
    assert.equal(cache.bytes, ENTRY)
    assert.equal(cache.get('a')![0], 2)
  })

  it('keeps nothing that is larger than it is', () => {
    const cache = new EmbeddingCache(ENTRY - 1)
    cache.set('a', vector(1))
    assert.equal(cache.get('a'), undefined)
    assert.equal(cache.bytes, 0)
  })
})

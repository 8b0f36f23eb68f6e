import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { murmur2, partitionOf } from '../../bus/partition.ts'

describe('partition of a key', () => {
  // The values of Kafka's own test of its hash.
  const known: [string, number][] = [
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ]
  for (const [key, hash] of known) {
    it(`murmur2 of ${key}`, () => assert.equal(murmur2(Buffer.from(key)), hash))
  }

  it('is the positive hash modulo the number of partitions', () => {
    assert.equal(partitionOf('foobar', 7), (-790332482 & 0x7fffffff) % 7)
  })

  it('is in range and spreads for any text', () => {
    const counts = [0, 0, 0, 0, 0]
    for (let i = 0; i < 5000; i++) counts[partitionOf(`ключ ${i} 🔑`, 5)]!++
    assert.ok(Math.min(...counts) > 800, String(counts))
    assert.equal(partitionOf('', 1), 0)
    assert.ok([0, 1, 2].includes(partitionOf('', 3)))
  })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MinHeap } from '../../../engine/tokens/min-heap.ts'

test('gives back the least, also beyond its first capacity', () => {
  const heap = new MinHeap(1)
  const keys = Array.from({ length: 500 }, (_, i) => (i * 7919) % 503)
  for (const key of keys.slice(0, 250)) heap.push(key)
  const first = Array.from({ length: 100 }, () => heap.pop())
  for (const key of keys.slice(250)) heap.push(key)
  const rest: number[] = []
  while (heap.size > 0) rest.push(heap.pop())
  assert.deepEqual(
    first,
    keys
      .slice(0, 250)
      .sort((a, b) => a - b)
      .slice(0, 100),
  )
  assert.deepEqual(
    [...rest].sort((a, b) => a - b),
    rest,
  )
  assert.deepEqual(
    [...first, ...rest].sort((a, b) => a - b),
    [...keys].sort((a, b) => a - b),
  )
})

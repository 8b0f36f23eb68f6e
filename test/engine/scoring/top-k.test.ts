import assert from 'node:assert/strict'
import { test } from 'node:test'
import { topK } from '../../../engine/scoring/top-k.ts'

test('the k greatest by falling logit, the lowest ids among equals', () => {
  const logits = Float32Array.of(1, 5, 3, 5, -2, 3, 0)
  assert.deepEqual([...topK(logits, 1)], [1])
  assert.deepEqual([...topK(logits, 3)], [1, 3, 2])
  assert.deepEqual([...topK(logits, 7)], [1, 3, 2, 5, 0, 6, 4])
  assert.deepEqual([...topK(new Float32Array(6), 3)], [0, 1, 2])
})

test('it agrees with sorting everything', () => {
  const logits = Float32Array.from({ length: 500 }, (_, id) => Math.round(50 * Math.sin(id * 12.9898)))
  const order = Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]! || a - b)
  for (const k of [1, 2, 17, 499, 500]) assert.deepEqual([...topK(logits, k)], order.slice(0, k))
})

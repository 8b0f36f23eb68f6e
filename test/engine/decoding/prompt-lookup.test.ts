import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lookUp } from '../../../engine/decoding/prompt-lookup.ts'

const tokens = (sequence: readonly number[], most: number) => lookUp(sequence, most).tokens

test('what followed the last two tokens before is the draft', () => {
  assert.deepEqual(tokens([1, 2, 3, 4, 5, 1, 2], 3), [3, 4, 5])
  assert.deepEqual(tokens([1, 2, 3, 4, 5, 1, 2], 1), [3])
})

test('one token in common, or none, is not enough', () => {
  assert.deepEqual(tokens([1, 2, 3, 9, 2], 3), [])
  assert.deepEqual(tokens([1, 2, 3], 3), [])
  assert.deepEqual(tokens([1], 3), [])
  assert.deepEqual(tokens([], 3), [])
})

test('the longest match counts, of equally long ones the latest', () => {
  assert.deepEqual(tokens([7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2], 2), [3, 8])
  assert.deepEqual(tokens([1, 2, 3, 8, 1, 2, 4, 9, 1, 2], 2), [4, 9])
})

test('a repetition goes on', () => {
  assert.deepEqual(tokens([5, 6, 5, 6], 5), [5, 6, 5, 6, 5])
  assert.deepEqual(tokens([4, 4, 4], 3), [4, 4, 4])
})

test('it says how many tokens matched, up to 8', () => {
  assert.equal(lookUp([1, 2, 3, 9, 1, 2, 3], 1).matched, 3)
  const long = Array.from({ length: 20 }, (_, i) => i)
  assert.equal(lookUp([...long, ...long], 1).matched, 8)
  assert.equal(lookUp(long, 1).matched, 0)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PairRanks } from '../../../engine/tokens/pair-ranks.ts'

test('finds every pair that was added and no other', () => {
  const size = 300
  const ranks = new PairRanks(size * 2)
  for (let left = 0; left < size; left++) {
    ranks.add(left, 2 * left, left)
    ranks.add(2 * left, left + 1, size + left)
  }
  for (let left = 0; left < size; left++) {
    assert.equal(ranks.get(left, 2 * left), left)
    assert.equal(ranks.get(left, 2 * left + 1000), -1)
  }
  // (0, 1), from left 0.
  assert.equal(ranks.get(0, 1), size)
  assert.equal(ranks.get(1, 0), -1)
})

test('an id that stands for no token has no merge, and the later of two ranks counts', () => {
  const ranks = new PairRanks(0)
  assert.equal(ranks.get(0, 0), -1)
  const one = new PairRanks(1)
  one.add(3, 4, 0)
  one.add(3, 4, 7)
  assert.equal(one.get(3, 4), 7)
  assert.equal(one.get(-1, 4), -1)
  assert.equal(one.get(3, -1), -1)
})

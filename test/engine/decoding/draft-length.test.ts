import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planDrafts } from '../../../engine/decoding/draft-length.ts'
import { partSizeFor } from '../../../engine/decoding/part-size.ts'

const [SMALL, LARGE] = [partSizeFor(16), partSizeFor(17)]

const drafts = (count: number, length: number, chance: number) =>
  Array.from({ length: count }, () => ({ length, chance }))
const lengthOf = (given: Parameters<typeof planDrafts>[0], size = SMALL) => planDrafts(given, size).length

test('what fits into a part of 16 is taken where it promises a little', () => {
  assert.equal(lengthOf(drafts(1, 15, 0.9)), 15)
  assert.equal(lengthOf(drafts(1, 4, 0.9)), 4)
  assert.equal(lengthOf(drafts(5, 15, 0.3)), 2)
  assert.equal(lengthOf(drafts(2, 15, 0.001)), 0)
})

test('what does not has to promise more than it costs', () => {
  assert.equal(lengthOf(drafts(16, 15, 0.3)), 0)
  // 1 + 0.95 + 0.90 + 0.86 tokens for 2.3 times the time.
  assert.equal(lengthOf(drafts(16, 15, 0.95)), 3)
  assert.equal(lengthOf([...drafts(1, 15, 0.9), ...drafts(15, 0, 0)]), 0)
})

test('nor does a draft that costs something itself go on for ever', () => {
  const free = planDrafts(drafts(1, 15, 0.9), SMALL)
  const dear = planDrafts(drafts(1, 15, 0.9), SMALL, 0.25)
  assert(dear.length > 1 && dear.length < 8, `${dear.length}`)
  assert(dear.rate < free.rate)
  assert(dear.rate > planDrafts(drafts(1, 0, 0), SMALL).rate)
})

test('without a guess nothing is drafted, and 64 sequences leave no room for more', () => {
  assert.equal(lengthOf(drafts(3, 0, 0)), 0)
  assert.equal(lengthOf(drafts(64, 15, 0.9)), 0)
})

test('a larger part is full later', () => {
  assert.equal(lengthOf(drafts(16, 15, 0.4), SMALL), 0)
  assert.equal(lengthOf(drafts(16, 15, 0.4), LARGE), 1)
  assert.equal(lengthOf(drafts(32, 15, 0.3), LARGE), 0)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { draftLength } from '../../../engine/decoding/draft-length.ts'

const drafts = (count: number, length: number, chance: number) =>
  Array.from({ length: count }, () => ({ length, chance }))

test('what fits beside the newest tokens is free, however little it promises', () => {
  assert.equal(draftLength(drafts(1, 15, 0.1), 15), 15)
  assert.equal(draftLength(drafts(1, 4, 0.1), 15), 4)
  assert.equal(draftLength(drafts(5, 15, 0.1), 15), 2)
})

test('where nothing is free, a draft has to promise more than it costs', () => {
  assert.equal(draftLength(drafts(16, 15, 0.3), 15), 0)
  // 1 + 0.9 + 0.81 + 0.73 tokens for 2.3 times the time.
  assert.equal(draftLength(drafts(16, 15, 0.9), 15), 3)
  assert.equal(draftLength([...drafts(1, 15, 0.9), ...drafts(15, 0, 0)], 15), 0)
})

test('without a guess nothing is drafted, nor beyond what is allowed', () => {
  assert.equal(draftLength(drafts(3, 0, 0), 15), 0)
  assert.equal(draftLength(drafts(1, 15, 0.9), 0), 0)
  assert.equal(draftLength(drafts(64, 15, 0.9), 15), 0)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { draftLength } from '../../../engine/decoding/draft-length.ts'

const drafts = (count: number, length: number, chance: number) =>
  Array.from({ length: count }, () => ({ length, chance }))

test('alone, what promises a little is read along', () => {
  assert.equal(draftLength(drafts(1, 4, 0.9)), 4)
  assert.equal(draftLength(drafts(1, 1, 0.3)), 1)
  assert.equal(draftLength(drafts(2, 15, 0.001)), 0)
})

test('but not for ever: each token costs something, and the last ones are the least probable', () => {
  const [sure, unsure] = [draftLength(drafts(1, 15, 0.8)), draftLength(drafts(1, 15, 0.5))]
  assert(unsure > 0 && unsure < sure, `${unsure} ${sure}`)
  assert(sure < 15, `${sure}`)
})

test('with many sequences it has to promise more than it costs', () => {
  assert.equal(draftLength(drafts(16, 15, 0.3)), 0)
  assert(draftLength(drafts(16, 15, 0.95)) > 0)
  assert.equal(draftLength([...drafts(1, 15, 0.9), ...drafts(15, 0, 0)]), 0)
})

test('without a guess nothing is drafted, and 64 sequences leave no room for more', () => {
  assert.equal(draftLength(drafts(3, 0, 0)), 0)
  assert.equal(draftLength(drafts(64, 15, 0.9)), 0)
  assert.equal(draftLength(drafts(32, 15, 0.99)), 1)
})

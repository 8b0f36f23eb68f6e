import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { batchesOf, type PassLimits, tailStart } from '../../../engine/learner/batches.ts'
import { LEAST_LENGTH } from '../../../engine/learner/positions.ts'
import { uniform } from '../graph/finite-differences.ts'

describe('batchesOf', () => {
  const free: PassLimits = { rows: 1, tokens: 1 }

  it('groups like lengths, longest first, ties in order', () => {
    assert.deepEqual(batchesOf([10, 40, 39, 10, 38], 80, free), [
      { members: [1, 2], rows: 2, length: 40 },
      { members: [4], rows: 1, length: 38 },
      { members: [0, 3], rows: 2, length: 10 },
    ])
  })

  it('holds every sequence once, within the budget, with at most a quarter of padding in a row', () => {
    const random = uniform(1)
    const lengths = Array.from({ length: 200 }, () => Math.floor(150 + 149 * random()))
    const batches = batchesOf(lengths, 1024, free)
    assert.deepEqual(
      batches.flatMap(batch => batch.members).sort((a, b) => a - b),
      [...lengths.keys()].filter(index => lengths[index]! > 0),
    )
    for (const { members, length } of batches) {
      assert(members.length * length <= 1024)
      for (const member of members) {
        assert(lengths[member]! <= length)
        assert(lengths[member]! >= 0.75 * length || length === LEAST_LENGTH)
      }
    }
  })

  it('leaves empty sequences out, and takes one that exceeds the budget alone', () => {
    assert.deepEqual(batchesOf([0, 100, 0, 100], 64, free), [
      { members: [1], rows: 1, length: 100 },
      { members: [3], rows: 1, length: 100 },
    ])
    assert.deepEqual(batchesOf([0], 64, free), [])
  })

  it('adds rows of padding to passes that are too small', () => {
    assert.deepEqual(batchesOf([10, 9], 64, { rows: 1, tokens: 45 }), [
      { members: [0, 1], rows: 5, length: 10 },
    ])
    assert.deepEqual(batchesOf([10], 64, { rows: 2, tokens: 1 }), [{ members: [0], rows: 2, length: 10 }])
  })

  it('pads very short sequences to the least length of a pass', () => {
    assert.deepEqual(batchesOf([1], 64, free), [{ members: [0], rows: 1, length: LEAST_LENGTH }])
  })
})

describe('tailStart', () => {
  const batch = { members: [0, 1], rows: 2, length: 40 }

  it('is the first row that some member wants', () => {
    assert.equal(tailStart([{ from: 25 }, { from: 20 }], batch, { rows: 1, tokens: 1 }), 20)
  })

  it('leaves the least of a pass: rows of queries, and tokens over all rows', () => {
    const late = [{ from: 39 }, { from: 39 }]
    assert.equal(tailStart(late, batch, { rows: 1, tokens: 1 }), 40 - LEAST_LENGTH)
    assert.equal(tailStart(late, batch, { rows: 1, tokens: 61 }), 40 - 31)
    assert.equal(tailStart(late, batch, { rows: 1, tokens: 90 }), 0)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assignPartitions } from '../../../bus/kafka/assign.ts'

const assign = (owned: Record<string, number[]>, partitions: number) =>
  Object.fromEntries(
    [
      ...assignPartitions(
        Object.entries(owned).map(([member, own]) => ({ member, owned: own })),
        partitions,
      ),
    ].map(([member, own]) => [member, own.sort()]),
  )

describe('who reads which partitions', () => {
  it('is shared out evenly, all of them', () => {
    assert.deepEqual(assign({ a: [], b: [] }, 5), { a: [0, 2, 4], b: [1, 3] })
    assert.deepEqual(assign({ a: [] }, 3), { a: [0, 1, 2] })
    assert.deepEqual(assign({ a: [], b: [], c: [] }, 2), { a: [0], b: [1], c: [] })
  })

  it('stays where it was as far as it can', () => {
    assert.deepEqual(assign({ a: [0, 1, 2, 3], b: [] }, 4), { a: [0, 1], b: [2, 3] })
    assert.deepEqual(assign({ a: [3], b: [0, 1] }, 4), { a: [2, 3], b: [0, 1] })
    assert.deepEqual(assign({ b: [1, 2, 3] }, 4), { b: [0, 1, 2, 3] })
  })

  it('goes to one only where two think that it is theirs', () => {
    const shared = assign({ a: [0, 1], b: [0, 1] }, 2)
    assert.deepEqual([...shared.a!, ...shared.b!].sort(), [0, 1])
    assert.equal(shared.a!.length, 1)
  })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OpenBatch } from '../../operators/open-batch.ts'
import { record, sliceRecord } from '../helpers/records.ts'

const slice = (index: number, change = {}) =>
  sliceRecord({ instance: `i${index}`, batch: { number: 0, index, size: 3 }, ...change })
const at = (offset: number, value: ReturnType<typeof slice>) => record('slices', offset, value)

test('rollouts are taken in the order of their indices, whatever the order of arrival', () => {
  const batch = new OpenBatch({ number: 0, size: 3 }, 0)
  batch.add(at(10, slice(2, { prompt: [2] })))
  batch.add(at(11, slice(0, { prompt: [0] })))
  assert.equal(batch.has(0, 1), true)
  assert.equal(batch.has(0, 2), false)
  assert.equal(batch.complete, false)
  batch.add(at(12, slice(1, { prompt: [1] })))
  assert.equal(batch.complete, true)
  assert.deepEqual(
    batch.take(0, 3).map(item => [...item.prompt]),
    [[0], [1], [2]],
  )
  assert.deepEqual(batch.spans, [{ partition: 0, from: 10, to: 13 }])
  assert.deepEqual(batch.instances, ['i0', 'i1', 'i2'])
})

test('a rollout of several slices is whole when all are there', () => {
  const response = [1, 2]
  const batch = new OpenBatch({ number: 0, size: 3 }, 0)
  batch.add(at(0, slice(0, { parts: 2, part: 1, start: 1, response })))
  assert.equal(batch.has(0, 1), false)
  batch.add(at(1, slice(0, { parts: 2, part: 0, start: 0, response, kl: [1.5] })))
  assert.equal(batch.has(0, 1), true)
  const [item] = batch.take(0, 1)
  assert.deepEqual([...item!.response], [1, 2])
  assert.equal(batch.klSum, 1) // mean of 1.5 and 0.5
})

test('a failed rollout counts but is not trained on', () => {
  const batch = new OpenBatch({ number: 0, size: 3 }, 0)
  batch.add(at(0, slice(0)))
  batch.add(at(1, slice(1, { failed: 'too long' })))
  batch.add(at(2, slice(2)))
  assert.equal(batch.complete, true)
  assert.equal(batch.take(0, 3).length, 2)
  assert.deepEqual(batch.instances, ['i0', 'i2'])
})

test('a rollout that was refused in part counts once all of it came, and no other is taken for it', () => {
  const parts = (index: number) =>
    [0, 1, 2].map(part => slice(index, { parts: 3, part, start: part, response: [1, 2, 3] }))
  const batch = new OpenBatch({ number: 0, size: 3 }, 0)
  for (const [part, value] of parts(0).entries()) {
    if (part === 1) batch.add(at(part, value))
    else batch.refuse(at(part, value))
  }
  assert.equal(batch.has(0, 1), true)
  for (const value of parts(1)) batch.add(at(3, value))
  assert.equal(batch.complete, false)
  for (const value of parts(2)) batch.add(at(4, value))
  assert.equal(batch.complete, true)
  assert.equal(batch.take(0, 3).length, 2)
  assert.deepEqual(batch.instances, ['i1', 'i2'])
})

test('a batch does not wait for slices that were lost', () => {
  const batch = new OpenBatch({ number: 0, size: 3 }, 0)
  batch.add(at(0, slice(0)))
  batch.lose({ partition: 0, offset: 1 })
  assert.equal(batch.complete, false)
  batch.add(at(2, slice(2)))
  assert.equal(batch.complete, true)
  assert.equal(batch.take(0, 3).length, 2)
  assert.deepEqual(batch.spans, [{ partition: 0, from: 0, to: 3 }])
})

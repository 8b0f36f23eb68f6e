import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Delivery, Undecodable } from '../../bus/port.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import { BatchAssembly, type WholeBatch } from '../../operators/batch-assembly.ts'
import { batchKey } from '../../operators/batch-key.ts'
import { record, sliceRecord } from '../helpers/records.ts'

const member = (number: number, index: number, size: number, offset = index) => ({
  ...record('slices', offset, sliceRecord({ batch: { number, index, size } })),
  key: batchKey({ number, size }),
})
const undecodable = (key: string, offset: number): Undecodable<'slices'> => {
  const { value: _, ...envelope } = record('slices', offset, sliceRecord())
  return { ...envelope, key, error: new GraspError('RECORD_UNDECODABLE', 'not a record') }
}
/** What came out by adding these, one after the other. */
const assemble = (...deliveries: readonly Delivery<'slices'>[]) => {
  const assembly = new BatchAssembly<'slices'>()
  return deliveries.flatMap(delivery => assembly.add(delivery) ?? [])
}
const batches = (...deliveries: readonly Delivery<'slices'>[]) =>
  assemble(...deliveries).map(batch => batch as WholeBatch<'slices'>)

test('a batch comes out when its last member is in, in the order of indices', () => {
  assert.deepEqual(batches(member(0, 2, 3), member(0, 0, 3)), [])
  const [batch] = batches(member(0, 2, 3), member(0, 0, 3), member(0, 1, 3))
  assert.deepEqual(
    batch!.members.map(({ value }) => value.batch.index),
    [0, 1, 2],
  )
})

test('batches that come mixed are kept apart', () => {
  const found = batches(member(0, 0, 2, 0), member(1, 0, 2, 1), member(1, 1, 2, 2), member(0, 1, 2, 3))
  assert.deepEqual(
    found.map(({ number }) => number),
    [1, 0],
  )
})

test('a record that cannot be decoded stands in for the member of its batch, and of no other', () => {
  const lost = undecodable('batch 0 of 2', 1)
  const [zero, one] = batches(
    member(1, 0, 2, 0),
    lost,
    member(0, 0, 2, 2),
    undecodable('batch 2 of 3', 3),
    member(1, 1, 2, 4),
  )
  assert.deepEqual([zero!.number, zero!.members.length, zero!.undecodable], [0, 1, [lost]])
  assert.deepEqual([one!.number, one!.members.length, one!.undecodable], [1, 2, []])
})

test('a batch of which nothing can be decoded comes out too', () => {
  const [batch] = batches(undecodable('batch 3 of 2', 0), undecodable('batch 3 of 2', 1))
  assert.deepEqual([batch!.number, batch!.size, batch!.members], [3, 2, []])
  assert.equal(batch!.undecodable.length, 2)
})

test('one that belongs to no batch comes out by itself', () => {
  const stray = undecodable('k', 1)
  assert.deepEqual(assemble(member(0, 0, 2), stray), [{ stray }])
})

test('what is delivered again stands in for what was delivered before', () => {
  assert.deepEqual(batches(member(0, 0, 2), member(0, 0, 2)), [])
  const [batch] = batches(member(0, 0, 2), member(0, 0, 2), member(0, 1, 2))
  assert.equal(batch!.members.length, 2)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Undecodable } from '../../bus/port.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import { BatchAssembly } from '../../operators/batch-assembly.ts'
import { record, sliceRecord } from '../helpers/records.ts'

const member = (number: number, index: number, size: number, offset = index) =>
  record('slices', offset, sliceRecord({ batch: { number, index, size } }))
const undecodable = (offset: number, partition = 0): Undecodable<'slices'> => {
  const { value: _, ...envelope } = record('slices', offset, sliceRecord())
  return { ...envelope, partition, error: new GraspError('RECORD_UNDECODABLE', 'not a record') }
}

test('a batch comes out when its last member is in, in the order of indices', () => {
  const assembly = new BatchAssembly<'slices'>()
  assert.equal(assembly.add(member(0, 2, 3)), undefined)
  assert.equal(assembly.add(member(0, 0, 3)), undefined)
  const batch = assembly.add(member(0, 1, 3))
  assert.deepEqual(
    batch?.members.map(({ value }) => value.batch.index),
    [0, 1, 2],
  )
})

test('batches that come mixed are kept apart', () => {
  const assembly = new BatchAssembly<'slices'>()
  assembly.add(member(0, 0, 2))
  assembly.add(member(1, 0, 2))
  assert.equal(assembly.add(member(1, 1, 2))?.number, 1)
  assert.equal(assembly.add(member(0, 1, 2))?.number, 0)
})

test('an undecodable record stands in for the member that cannot come', () => {
  const assembly = new BatchAssembly<'slices'>()
  assembly.add(member(0, 0, 2))
  const batch = assembly.add(undecodable(1))
  assert.equal(batch?.members.length, 1)
  assert.equal(batch?.undecodable.length, 1)
  assert.equal(assembly.add(member(1, 0, 2, 2)), undefined, 'and is not counted again')
})

test('but only for one of its own partition', () => {
  const assembly = new BatchAssembly<'slices'>()
  assembly.add(member(0, 0, 2))
  assert.equal(assembly.add(undecodable(0, 1)), undefined, 'another batch lacks it')
  assert.equal(assembly.add(member(0, 1, 2))?.members.length, 2)
  const other = assembly.add({ ...member(1, 0, 2, 1), partition: 1 })
  assert.equal(other?.undecodable.length, 1)
})

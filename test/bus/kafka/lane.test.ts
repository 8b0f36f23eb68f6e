import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { RawMessage } from '../../../bus/kafka/client.ts'
import { Lane } from '../../../bus/kafka/lane.ts'
import { ORIGIN_HEADER, originHeader } from '../../../bus/kafka/origin.ts'

function message(
  offset: number,
  source?: { partition: number; offset: number; index?: number; round?: number },
) {
  const { partition = 0, index = 0, round = 0 } = source ?? {}
  const origin =
    source && originHeader({ topic: 'questions', partition, offset: source.offset, index }, round)
  return {
    offset: String(offset),
    timestamp: '0',
    key: null,
    value: Buffer.alloc(10),
    headers: origin ? { [ORIGIN_HEADER]: Buffer.from(origin) } : {},
    isControlRecord: false,
    batchContext: { producerId: '1', inTransaction: true },
  } satisfies RawMessage
}

function taken(lane: Lane): string[] {
  const offsets: string[] = []
  while (lane.queued > 0) {
    const { offset } = lane.next
    offsets.push(lane.take() ? offset : `(${offset})`)
  }
  return offsets
}

describe('a lane', () => {
  it('hands out what was fetched, in order, and counts it', () => {
    const lane = new Lane(3, {})
    lane.fetched([message(3), message(4)], 6)
    assert.equal(lane.next.offset, '3')
    assert.ok(lane.take())
    lane.fetched([message(6)], 7)
    assert.deepEqual([lane.queued, lane.queuedBytes], [2, 20])
    assert.deepEqual(taken(lane), ['4', '6'])
    assert.deepEqual([lane.queued, lane.queuedBytes, lane.cursor, lane.position], [0, 0, 7, 7])
  })

  it('knows repetitions by their origin, for each source partition', () => {
    const lane = new Lane(0, {})
    const from = (partition: number, offset: number, index = 0, round = 0) => ({
      partition,
      offset,
      index,
      round,
    })
    const origins = [
      from(0, 5),
      from(1, 3),
      from(0, 5),
      from(0, 5, 1),
      from(0, 4),
      from(1, 4),
      from(0, 5, 0, 1),
    ]
    lane.fetched([...origins.map((origin, i) => message(i, origin)), message(7), message(8)], 9)
    assert.deepEqual(taken(lane), ['0', '1', '(2)', '3', '(4)', '5', '6', '7', '8'])
  })

  it('goes on from what was seen before', () => {
    const lane = new Lane(0, { 'questions/0': [0, 9, 0] })
    lane.fetched([message(0, { partition: 0, offset: 9 }), message(1, { partition: 0, offset: 10 })], 2)
    assert.deepEqual(taken(lane), ['(0)', '1'])
  })

  it('tells what was seen below a position, before and after it is settled', () => {
    const lane = new Lane(0, {})
    lane.fetched(
      [0, 1, 2].map(i => message(i, { partition: i % 2, offset: 10 + i })),
      3,
    )
    taken(lane)
    const expected = [
      {},
      { 'questions/0': [0, 10, 0] },
      { 'questions/0': [0, 10, 0], 'questions/1': [0, 11, 0] },
      { 'questions/0': [0, 12, 0], 'questions/1': [0, 11, 0] },
    ]
    for (let position = 0; position <= 3; position++) {
      assert.deepEqual(lane.seenBelow(position), expected[position])
      lane.settle(position)
      assert.deepEqual(lane.seenBelow(position), expected[position])
      assert.equal(lane.done, position)
    }
    assert.deepEqual(lane.seenBelow(99), expected[3])
  })

  it('reaches past what is no record for anybody once all is handed out', () => {
    const lane = new Lane(0, {})
    lane.fetched([message(0), message(1)], 5)
    lane.take()
    assert.equal(lane.reach(1), 1)
    lane.take()
    assert.equal(lane.reach(1), 1)
    assert.equal(lane.reach(2), 5)
  })
})

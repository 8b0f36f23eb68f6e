import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCodec } from '../../../bus/codec.ts'
import type { RawMessage } from '../../../bus/kafka/client.ts'
import { HandOut } from '../../../bus/kafka/hand-out.ts'
import { Lane } from '../../../bus/kafka/lane.ts'
import { ORIGIN_HEADER, originHeader } from '../../../bus/kafka/origin.ts'
import type { Credits, Delivery } from '../../../bus/port.ts'
import { question, until } from '../samples.ts'

const codec = createCodec()

/** @param source offset of the record that it was made of */
function message(offset: number, source?: number): RawMessage {
  const origin =
    source === undefined
      ? {}
      : {
          [ORIGIN_HEADER]: originHeader({ topic: 'contexts', partition: 0, offset: source, index: 0 }, 0),
        }
  return {
    offset: String(offset),
    timestamp: '0',
    key: Buffer.from('k'),
    value: Buffer.from(codec.encode('questions', question(`q${offset}`))),
    headers: origin,
    isControlRecord: false,
    batchContext: { producerId: '1', inTransaction: true },
  }
}

function setUp(credits: Partial<Credits> = {}) {
  const lanes = new Map<number, Lane>()
  const out: string[] = []
  const failures: unknown[] = []
  const state = { ready: true, next: (_: Delivery<'questions'>) => {} }
  const handOut = new HandOut({
    topic: 'questions',
    partitions: 3,
    lanes,
    codec,
    credits: { records: 1000, bytes: 1 << 30, ...credits },
    ready: () => state.ready,
    next: delivery => {
      out.push(`${delivery.partition}/${delivery.offset}`)
      state.next(delivery)
    },
    failed: cause => failures.push(cause),
  })
  const fill = (partition: number, ...messages: RawMessage[]) => {
    const lane = lanes.get(partition) ?? new Lane(0, {})
    lanes.set(partition, lane)
    lane.fetched(messages, messages.length)
  }
  return { handOut, lanes, out, failures, state, fill }
}

describe('handing out', () => {
  it('lets partitions take turns, also where one is not the reader’s', () => {
    const { handOut, out, fill } = setUp()
    fill(0, message(0), message(1))
    fill(2, message(0), message(1), message(2))
    handOut.pump()
    assert.deepEqual(out, ['0/0', '2/0', '0/1', '2/1', '2/2'])
    assert.equal(handOut.held, 5)
  })

  it('stops where credits are out, and goes on when they are back', () => {
    const { handOut, out, fill } = setUp({ records: 2 })
    fill(0, message(0), message(1), message(2))
    handOut.pump()
    assert.deepEqual([out.length, handOut.open], [2, false])
    handOut.settle(0, 1)
    handOut.resume()
    assert.deepEqual(out, ['0/0', '0/1', '0/2'])
    handOut.release({ partition: 0, offset: 2 })
    handOut.settle(0, Number.POSITIVE_INFINITY)
    assert.equal(handOut.held, 0)
  })

  it('drops repetitions, which hold no credits', () => {
    const { handOut, out, fill } = setUp()
    fill(0, message(0, 7), message(1, 7), message(2, 8))
    handOut.pump()
    assert.deepEqual(out, ['0/0', '0/2'])
    assert.equal(handOut.held, 2)
  })

  it('hands out nothing once it is not to, and does not fall over itself where that is said by who takes', () => {
    const { handOut, out, state, fill } = setUp()
    fill(0, message(0), message(1))
    state.next = () => {
      handOut.resume()
      state.ready = false
    }
    handOut.pump()
    assert.deepEqual(out, ['0/0'])
    state.ready = true
    handOut.pump()
    assert.deepEqual(out, ['0/0', '0/1'])
  })

  it('gives the event loop its turns', async () => {
    const { handOut, out, fill } = setUp()
    fill(0, ...Array.from({ length: 600 }, (_, offset) => message(offset)))
    handOut.pump()
    assert.ok(out.length > 0 && out.length < 600, `${out.length} at once`)
    await until(() => out.length === 600)
  })

  it('tells what is thrown while a record is handed out, and can go on', () => {
    const { handOut, out, failures, state, fill } = setUp()
    fill(0, message(0), message(1))
    const fault = new Error('no')
    state.next = () => {
      state.next = () => {}
      throw fault
    }
    handOut.pump()
    assert.deepEqual(failures, [fault])
    handOut.pump()
    assert.deepEqual(out, ['0/0', '0/1'])
  })
})

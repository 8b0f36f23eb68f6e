import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import { crc32c } from '../../../bus/kafka/crc32c.ts'
import { Batch, type BatchRecord } from '../../../bus/kafka/record-batch.ts'

const require = createRequire(import.meta.url)

/** kafkajs's own encoder says what a batch looks like. */
async function byKafkajs(records: readonly BatchRecord[], origin: Parameters<Batch['write']>[2]) {
  const record = require('kafkajs/src/protocol/recordBatch/record/v0')
  const { RecordBatch } = require('kafkajs/src/protocol/recordBatch/v0')
  const { timestamp, producerId, ...rest } = origin
  const encoder = await RecordBatch({
    ...rest,
    producerId: producerId.toString(),
    firstTimestamp: timestamp,
    maxTimestamp: timestamp,
    records: records.map((each, i) => record({ ...each, offsetDelta: i, timestampDelta: 0 })),
    lastOffsetDelta: records.length - 1,
  })
  return encoder.buffer as Buffer
}

describe('CRC-32C', () => {
  it('of the check string is e3069283', () => {
    assert.equal(crc32c(Buffer.from('123456789')), 0xe3069283)
  })

  it('of 32 zero bytes is 8a9136aa (RFC 3720)', () => {
    assert.equal(crc32c(new Uint8Array(32)), 0x8a9136aa)
  })

  it('does not depend on where the bytes lie in memory', () => {
    const bytes = Uint8Array.from({ length: 77 }, (_, i) => (i * 31) & 255)
    const expected = crc32c(bytes)
    for (let shift = 1; shift < 9; shift++) {
      const moved = new Uint8Array(100)
      moved.set(bytes, shift)
      assert.equal(crc32c(moved.subarray(shift, shift + bytes.length)), expected)
    }
  })
})

describe('a record batch', () => {
  const origin = {
    producerId: 1234567890123n,
    producerEpoch: 7,
    firstSequence: 99,
    transactional: true,
    timestamp: 1_700_000_000_123,
  }
  const cases: Record<string, BatchRecord[]> = {
    'one record': [{ key: 'key', value: Buffer.from('value') }],
    'keys, values and headers as text in any script': [
      { key: 'ключ', value: '値', headers: { 'grasp-origin': 'topic/0/0/17/3', größe: 'ß' } },
    ],
    'no key and no value': [
      { key: null, value: null },
      { key: '', value: Buffer.alloc(0) },
    ],
    'header values as bytes': [{ key: 'k', value: Buffer.from('v'), headers: { a: Buffer.from([0, 255]) } }],
    'sizes on both sides of a varint byte': [61, 62, 63, 64, 65, 8190, 8191, 8192, 8193, 1 << 20].map(
      size => ({
        key: 'k',
        value: Buffer.alloc(size, size),
      }),
    ),
    'many records': Array.from({ length: 300 }, (_, i) => ({
      key: `key ${i}`,
      value: Buffer.from(`value ${i}`),
    })),
  }
  for (const [name, records] of Object.entries(cases)) {
    it(`${name}: is what kafkajs writes`, async () => {
      for (const transactional of [true, false]) {
        const batch = new Batch(records)
        const around = 5
        const target = Buffer.alloc(batch.size + 2 * around, 0xee)
        batch.write(target, around, { ...origin, transactional })
        const written = target.subarray(around, around + batch.size)
        assert.deepEqual(written, await byKafkajs(records, { ...origin, transactional }))
        assert.ok(
          [...target.subarray(0, around), ...target.subarray(around + batch.size)].every(b => b === 0xee),
        )
      }
    })
  }
})

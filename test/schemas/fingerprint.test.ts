import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { crc64, fingerprint, fingerprintText } from '../../schemas/fingerprint.ts'
import type { AvroSchema } from '../../schemas/load.ts'

/** The specification's bit-wise definition, without a table. */
function bitwise(bytes: Uint8Array): bigint {
  const empty = 0xc15d213aa4d7a795n
  let value = empty
  for (const byte of bytes) {
    value ^= BigInt(byte)
    for (let bit = 0; bit < 8; bit++) value = value & 1n ? (value >> 1n) ^ empty : value >> 1n
  }
  return value
}

describe('CRC-64-AVRO', () => {
  // The values of Avro's own test data (share/test/data/schema-tests.txt).
  const known: [AvroSchema, bigint][] = [
    ['null', 7195948357588979594n],
    ['boolean', -6970731678124411036n],
    ['int', 8247732601305521295n],
    ['long', -3434872931120570953n],
    ['float', 5583340709985441680n],
    ['double', -8181574048448539266n],
    ['bytes', 5746618253357095269n],
    ['string', -8142146995180207161n],
    [[], -1241056759729112623n],
    [['int'], -5232228896498058493n],
    [['int', 'boolean'], 5392556393470105090n],
    [{ type: 'record', name: 'foo', fields: [] }, -4824392279771201922n],
  ]
  for (const [schema, expected] of known) {
    it(`of ${JSON.stringify(schema)}`, () => assert.equal(BigInt.asIntN(64, fingerprint(schema)), expected))
  }

  it('of "int" is 7275d51a3f395c8f', () =>
    assert.equal(fingerprintText(fingerprint('int')), '7275d51a3f395c8f'))

  it('of nothing is the initial value', () => assert.equal(crc64(new Uint8Array()), 0xc15d213aa4d7a795n))

  it('agrees with the bit-wise definition', () => {
    const bytes = Uint8Array.from({ length: 1000 }, (_, i) => (i * i * 31 + 7) & 255)
    for (const length of [1, 2, 8, 255, 1000]) {
      assert.equal(crc64(bytes.subarray(0, length)), bitwise(bytes.subarray(0, length)))
    }
  })

  it('is written with leading zeros', () => assert.equal(fingerprintText(0xabcn), '0000000000000abc'))
})

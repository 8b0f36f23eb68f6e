import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Block, philox4x32 } from '../../../engine/sampling/philox.ts'

test('known answers of the Random123 reference (kat_vectors, philox4x32 10)', () => {
  const cases: { counter: Block; key: readonly [number, number]; block: Block }[] = [
    {
      counter: [0, 0, 0, 0],
      key: [0, 0],
      block: [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
    },
    {
      counter: [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
      key: [0xffffffff, 0xffffffff],
      block: [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
    },
    {
      counter: [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
      key: [0xa4093822, 0x299f31d0],
      block: [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
    },
  ]
  for (const { counter, key, block } of cases) assert.deepEqual(philox4x32(counter, key), block)
})

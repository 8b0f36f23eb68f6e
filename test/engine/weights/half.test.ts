import assert from 'node:assert/strict'
import { test } from 'node:test'
import { narrowBf16, narrowF16, widenBf16, widenF16 } from '../../../engine/weights/half.ts'

test('every half widens to the value that IEEE 754 gives it', () => {
  assert.deepEqual(
    [
      ...widenF16(
        Uint16Array.of(0x0000, 0x3c00, 0xc000, 0x7bff, 0x0400, 0x03ff, 0x0001, 0x3555, 0x7c00, 0xfc00),
      ),
    ],
    [0, 1, -2, 65504, 2 ** -14, 1023 * 2 ** -24, 2 ** -24, 1365 * 2 ** -12, Infinity, -Infinity],
  )
  assert.ok(Object.is(widenF16(Uint16Array.of(0x8000))[0], -0))
  assert.ok(Number.isNaN(widenF16(Uint16Array.of(0x7e01))[0]))
})

test('narrowing undoes widening for all 65,536 halves and bfloats', () => {
  const all = Uint16Array.from({ length: 65536 }, (_, half) => half)
  const halfNaN = (half: number) => (half & 0x7fff) > 0x7c00
  const bfloatNaN = (half: number) => (half & 0x7fff) > 0x7f80
  narrowF16(widenF16(all)).forEach((half, i) => {
    if (halfNaN(i)) assert.ok(halfNaN(half))
    else assert.equal(half, i)
  })
  narrowBf16(widenBf16(all)).forEach((half, i) => {
    if (bfloatNaN(i)) assert.ok(bfloatNaN(half))
    else assert.equal(half, i)
  })
})

test('f16 rounds to nearest, ties to even, and overflows at 65,520', () => {
  const cases: [number, number][] = [
    [1 + 2 ** -11, 0x3c00], // tie between 1 and 1 + 2^-10: even
    [1 + 3 * 2 ** -11, 0x3c02], // tie: up to even
    [1 + 2 ** -11 + 2 ** -20, 0x3c01],
    [2048 + 1, 0x6800],
    [65519, 0x7bff],
    [65520, 0x7c00],
    [-65520, 0xfc00],
    [2 ** -25, 0x0000], // tie between 0 and the least half: even
    [2 ** -25 * 1.01, 0x0001],
    [3 * 2 ** -25, 0x0002],
    [2 ** -14 - 2 ** -26, 0x0400], // the greatest subnormal rounds into the normals
    [1e-30, 0x0000],
    [-1e-30, 0x8000],
  ]
  for (const [value, half] of cases) assert.equal(narrowF16(Float32Array.of(value))[0], half, String(value))
})

test('bf16 rounds to nearest, ties to even, and keeps NaN and infinity', () => {
  const cases: [number, number][] = [
    [0x3f808000, 0x3f80], // tie: even
    [0x3f818000, 0x3f82], // tie: up to even
    [0x3f808001, 0x3f81],
    [0x7f7fffff, 0x7f80], // the greatest single rounds to infinity
    [0x7f800000, 0x7f80],
    [0x7f800001, 0x7fc0], // a NaN whose payload is in the lower half
  ]
  for (const [word, half] of cases) {
    const narrowed = narrowBf16(new Float32Array(Uint32Array.of(word).buffer))[0]
    assert.equal(narrowed, half, word.toString(16))
  }
})

test('a view into a larger buffer is narrowed from its own start', () => {
  const buffer = Float32Array.of(9, 1, 2)
  assert.deepEqual([...narrowBf16(buffer.subarray(1))], [0x3f80, 0x4000])
})

/**
 * Philox4x32-10, a counter-based random generator: block i of a stream is a pure function of (key, i), so
 * draws do not depend on the order in which they are made.
 * Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC11), section 4.3.
 */
const ROUNDS = 10
const MULTIPLIER_0 = 0xd2511f53
const MULTIPLIER_1 = 0xcd9e8d57
const WEYL_0 = 0x9e3779b9
const WEYL_1 = 0xbb67ae85

export type Block = readonly [number, number, number, number]

/** Four uniform 32-bit words for a counter of four words and a key of two. */
export function philox4x32(counter: Block, key: readonly [number, number]): Block {
  let [c0, c1, c2, c3] = counter
  let [k0, k1] = key
  for (let round = 0; round < ROUNDS; round++) {
    const low0 = Math.imul(MULTIPLIER_0, c0) >>> 0
    const high0 = multiplyHigh(MULTIPLIER_0, c0)
    const low1 = Math.imul(MULTIPLIER_1, c2) >>> 0
    const high1 = multiplyHigh(MULTIPLIER_1, c2)
    c0 = (high1 ^ c1 ^ k0) >>> 0
    c2 = (high0 ^ c3 ^ k1) >>> 0
    c1 = low1
    c3 = low0
    k0 = (k0 + WEYL_0) >>> 0
    k1 = (k1 + WEYL_1) >>> 0
  }
  return [c0, c1, c2, c3]
}

/** The upper 32 bits of a 32 × 32 bit product, by 16-bit halves: a double holds only 53 bits. */
function multiplyHigh(a: number, b: number): number {
  const aLow = a & 0xffff
  const aHigh = a >>> 16
  const bLow = b & 0xffff
  const bHigh = b >>> 16
  const low = aLow * bLow
  const middle = aHigh * bLow + (low >>> 16)
  const carry = aLow * bHigh + (middle % 0x10000)
  return aHigh * bHigh + Math.floor(middle / 0x10000) + Math.floor(carry / 0x10000)
}

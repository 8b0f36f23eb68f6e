/**
 * f32 to bf16 at random: up or down with probabilities that make the mean the number itself. A moving average that
 * changes by less than half of a bf16's step (1/256 to 1/512 of it) would never move if it were rounded to the nearest; so
 * it does on average.
 */
import { createHash } from 'node:crypto'
import { philox4x32 } from '../sampling/philox.ts'

/** Names the random numbers of one parameter in one step. */
export function roundingKey(parameter: string, step: number): number {
  const digest = createHash('sha256').update(parameter).digest()
  const philoxKey = [digest.readUInt32LE(0), digest.readUInt32LE(4)] as const
  return philox4x32([step, 0, digest.readUInt32LE(8), digest.readUInt32LE(12)], philoxKey)[0]
}

/**
 * Finite numbers of two arrays of equal length at once: one hash of (key, place) gives both of them their 16 bits. The
 * hash is Wellons' lowbias32: what is rounded here needs no long streams, and Philox would take longer than the step.
 * @param first of the elements' places
 */
export function narrowStochastically(
  a: Float32Array,
  b: Float32Array,
  key: number,
  first: number,
  narrowA: Uint16Array,
  narrowB: Uint16Array,
): void {
  const wordsA = new Uint32Array(a.buffer, a.byteOffset, a.length)
  const wordsB = new Uint32Array(b.buffer, b.byteOffset, b.length)
  for (let i = 0; i < wordsA.length; i++) {
    let x = key ^ (first + i)
    x = Math.imul(x ^ (x >>> 16), 0x7feb352d)
    x = Math.imul(x ^ (x >>> 15), 0x846ca68b)
    x ^= x >>> 16
    narrowA[i] = (wordsA[i]! + (x & 0xffff)) >>> 16
    narrowB[i] = (wordsB[i]! + (x >>> 16)) >>> 16
  }
}

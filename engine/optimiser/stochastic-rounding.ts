/**
 * f32 to bf16 at random: up or down with probabilities that make the mean the number itself. A moving average that
 * changes by less than half of a bf16's step (1/256 to 1/512 of it) would never move if it were rounded to the nearest; so
 * it does on average.
 *
 * One hash of (key, place) gives both moments of an element their 16 random bits, which are added below the bits that
 * stay. The hash is Wellons' lowbias32: what is rounded here needs no long streams, and Philox would take longer than
 * the step.
 */
import { createHash } from 'node:crypto'
import { philox4x32 } from '../sampling/philox.ts'

/** Multipliers of lowbias32, as i32. */
export const MIX_1 = 0x7feb352d
export const MIX_2 = 0x846ca68b | 0

/** WebAssembly (runtime/wasm-module.ts): of the place of the first of four elements, on the stack, their random words `draw`. */
export const RANDOM_HALVES = `
  words.splat words.lanes words.add key words.splat xor =draw
  draw draw 16 words.shift-right xor mix1 words.splat words.multiply =draw
  draw draw 15 words.shift-right xor mix2 words.splat words.multiply =draw
  draw draw 16 words.shift-right xor =draw`

/** Names the random numbers of one parameter in one step. */
export function roundingKey(parameter: string, step: number): number {
  const digest = createHash('sha256').update(parameter).digest()
  const philoxKey = [digest.readUInt32LE(0), digest.readUInt32LE(4)] as const
  return philox4x32([step, 0, digest.readUInt32LE(8), digest.readUInt32LE(12)], philoxKey)[0]
}

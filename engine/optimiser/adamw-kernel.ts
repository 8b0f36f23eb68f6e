/**
 * AdamW's arithmetic over arrays, in WebAssembly, four elements at a time: every operation rounds to f32, in the
 * order of
 *
 *   s = g · scale
 *   m ← β₁ · m + (1 − β₁) · s,  v ← β₂ · v + (1 − β₂) · s · s
 *   w ← w · shrink − (rate · m) / (√v · correction + ε)
 *
 * Moments of weights without a gradient fade, and arithmetic on numbers below 1e-38 is ten times slower: so a grain
 * is added and taken away again, which leaves multiples of 1e-27 (m) and 1e-37 (v), far below what ε lets count.
 *
 * Moments that are held in bf16 are widened before and rounded at random after (stochastic-rounding.ts); w is made of
 * the unrounded ones.
 *
 * The arrays go through the module's memory a piece at a time, small enough for the processor's cache.
 */

import { assemble, TYPE, wasmKernel } from '../runtime/wasm-module.ts'
import { MIX_1, MIX_2, RANDOM_HALVES } from './stochastic-rounding.ts'

/** f32, or the bits of bf16. */
export type Moments = Float32Array | Uint16Array

export interface AdamwFactors {
  /** Of the gradients. */
  readonly scale: number
  readonly beta1: number
  readonly beta2: number
  readonly rate: number
  readonly correction: number
  readonly epsilon: number
  readonly shrink: number
}

/** Elements of a piece, of each of the four arrays: 64 KiB in all. */
const PIECE = 4096
const PAGES = (4 * 4 * PIECE) / 65_536
const ADDRESSES = { w: 0, g: 4 * PIECE, m: 8 * PIECE, v: 12 * PIECE }

const GRAIN_M = 1e-20
const GRAIN_V = 1e-30

const FACTORS = [
  ...['scale', 'beta1', 'rest1', 'grain1', 'beta2', 'rest2', 'grain2'],
  ...['rate', 'correction', 'epsilon', 'shrink'],
]
/** Of random numbers: the key, the place of the first element, and the hash's constants. */
const DRAW = ['key', 'first', 'mix1', 'mix2']
const VECTORS = ['s', 'mean', 'square', 'draw', 'halves']
/** Each factor is given as a number and used as a vector. */
const LOCALS = [
  ...['bytes', ...DRAW, ...FACTORS.map(name => `given.${name}`)],
  ...[...FACTORS, ...VECTORS, 'at', 'half'],
]

/** The kernel for one way to hold moments: `load@m` pushes four of them, and `save` stores `mean` and `square`. */
function kernelOf(load: (moment: 'm' | 'v') => string, save: string) {
  const body = assemble(
    `${FACTORS.map(name => `given.${name} splat =${name}`).join(' ')}
    loop
      at 1 i32.shift-right =half
      at load@g scale multiply =s
      beta1 ${load('m')} multiply  rest1 s multiply  add
      grain1 add grain1 subtract  =mean
      beta2 ${load('v')} multiply  rest2 s multiply s multiply  add
      grain2 add grain2 subtract  =square
      ${save}
      at
        at load@w shrink multiply
        rate mean multiply  square sqrt correction multiply epsilon add  divide
        subtract
      store@w
      at 16 i32.add :=at bytes i32.less repeat
    end`,
    LOCALS,
    ADDRESSES,
  )
  return wasmKernel<(bytes: number, ...numbers: number[]) => void>(PAGES, {
    name: 'step',
    parameters: [TYPE.i32, ...DRAW.map(() => TYPE.i32), ...FACTORS.map(() => TYPE.f32)],
    results: [],
    vectors: FACTORS.length + VECTORS.length,
    integers: 2,
    body,
  })
}

const singles = () => kernelOf(moment => `at load@${moment}`, 'at mean store@m  at square store@v')

const halves = () =>
  kernelOf(
    moment => `half halves.load@${moment} 16 words.shift-left`,
    `at 2 i32.shift-right first i32.add ${RANDOM_HALVES}
    half  mean draw 65535 words.splat and words.add 16 words.shift-right :=halves halves words.narrow  halves.store@m
    half  square draw 16 words.shift-right words.add 16 words.shift-right :=halves halves words.narrow  halves.store@v`,
  )

export class AdamwKernel {
  readonly #singles = singles()
  readonly #halves = halves()

  /**
   * One step of arrays of equal length.
   * @param w weights, only read
   * @param g gradients, only read
   * @param m first moments, advanced in place
   * @param v second moments, advanced in place; of the type of `m`
   * @param next takes the new weights
   * @param key of the random numbers that bf16 moments are rounded by
   */
  step(
    w: Float32Array,
    g: Float32Array,
    m: Moments,
    v: Moments,
    next: Float32Array,
    { scale, beta1, beta2, rate, correction, epsilon, shrink }: AdamwFactors,
    key = 0,
  ): void {
    const { run, memory } = m instanceof Uint16Array ? this.#halves : this.#singles
    const held = m instanceof Uint16Array ? new Uint16Array(memory.buffer) : memory
    const [wAt, gAt] = [0, PIECE]
    const [mAt, vAt] = [ADDRESSES.m / held.BYTES_PER_ELEMENT, ADDRESSES.v / held.BYTES_PER_ELEMENT]
    const first = [scale, beta1, 1 - beta1, GRAIN_M]
    const factors = [...first, beta2, 1 - beta2, GRAIN_V, rate, correction, epsilon, shrink]
    for (let from = 0; from < w.length; from += PIECE) {
      const to = Math.min(w.length, from + PIECE)
      const count = to - from
      memory.set(w.subarray(from, to), wAt)
      memory.set(g.subarray(from, to), gAt)
      held.set(m.subarray(from, to), mAt)
      held.set(v.subarray(from, to), vAt)
      run(4 * count, key, from, MIX_1, MIX_2, ...factors)
      m.set(held.subarray(mAt, mAt + count), from)
      v.set(held.subarray(vAt, vAt + count), from)
      next.set(memory.subarray(wAt, wAt + count), from)
    }
  }
}

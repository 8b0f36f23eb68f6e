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
 * The arrays go through the module's memory a piece at a time, small enough for the processor's cache.
 */
import { widenBf16 } from '../weights/half.ts'
import { narrowStochastically } from './stochastic-rounding.ts'
import { assemble, TYPE, wasmKernel } from './wasm-module.ts'

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
/** Each factor is given as a number and used as a vector. */
const LOCALS = ['bytes', ...FACTORS.map(name => `given.${name}`), ...FACTORS, 's', 'mean', 'square', 'at']

const body = assemble(
  `${FACTORS.map(name => `given.${name} splat =${name}`).join(' ')}
  loop
    at load@g scale multiply =s
    at
      beta1 at load@m multiply  rest1 s multiply  add
      grain1 add grain1 subtract  :=mean
    store@m
    at
      beta2 at load@v multiply  rest2 s multiply s multiply  add
      grain2 add grain2 subtract  :=square
    store@v
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

export class AdamwKernel {
  readonly #kernel = wasmKernel<(bytes: number, ...factors: number[]) => void>(PAGES, {
    name: 'step',
    parameters: [TYPE.i32, ...FACTORS.map(() => TYPE.f32)],
    results: [],
    vectors: FACTORS.length + 3,
    integers: 1,
    body,
  })

  /**
   * One step of arrays of equal length.
   * @param w weights, only read
   * @param g gradients; zero afterwards
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
    const { run, memory } = this.#kernel
    const [wAt, gAt, mAt, vAt] = [0, PIECE, 2 * PIECE, 3 * PIECE]
    const first = [scale, beta1, 1 - beta1, GRAIN_M]
    const factors = [...first, beta2, 1 - beta2, GRAIN_V, rate, correction, epsilon, shrink]
    for (let from = 0; from < w.length; from += PIECE) {
      const to = Math.min(w.length, from + PIECE)
      const count = to - from
      const slopes = g.subarray(from, to)
      memory.set(w.subarray(from, to), wAt)
      memory.set(slopes, gAt)
      const [mean, square] = [memory.subarray(mAt, mAt + count), memory.subarray(vAt, vAt + count)]
      fill(mean, m.subarray(from, to))
      fill(square, v.subarray(from, to))
      run(4 * count, ...factors)
      if (m instanceof Uint16Array && v instanceof Uint16Array) {
        narrowStochastically(mean, square, key, from, m.subarray(from, to), v.subarray(from, to))
      } else {
        m.set(mean, from)
        v.set(square, from)
      }
      next.set(memory.subarray(wAt, wAt + count), from)
      // Here it is in the cache still.
      slopes.fill(0)
    }
  }
}

function fill(target: Float32Array, source: Moments): void {
  if (source instanceof Uint16Array) widenBf16(source, target)
  else target.set(source)
}

/**
 * `exponential` (exponential.ts) of a whole vocabulary in WebAssembly, two at a time, and their sum: the same operations
 * in the same order, so the same bits, in a third of the time.
 */
import { assemble, TYPE, wasmKernel } from '../runtime/wasm-module.ts'
import { LEAST, PER_UNIT, POWERS, STEP_HIGH, STEP_LOW } from './exponential.ts'

const PAGE = 65_536
/** Each is given as a number and used as a pair. */
const GIVEN = [
  'greatest',
  'rate',
  'least',
  'perUnit',
  'high',
  'low',
  'half',
  'c2',
  'c3',
  'c4',
  'c5',
  'one',
] as const
const COEFFICIENTS = { least: LEAST, perUnit: PER_UNIT, high: STEP_HIGH, low: STEP_LOW, half: 0.5, one: 1 }
const TAYLOR = { c2: 1 / 2, c3: 1 / 6, c4: 1 / 24, c5: 1 / 120 }
const VECTORS = ['x', 'n', 'whole', 'r', 'square', 'weight', 'sum']
const LOCALS = ['bytes', ...GIVEN.map(name => `given.${name}`), ...GIVEN, ...VECTORS, 'at', 'to']

export class Exponentials {
  /** exp((logit − greatest) · rate) of each, after a call. */
  readonly weights: Float64Array
  readonly #logits: Float32Array
  readonly #run: (bytes: number, ...numbers: number[]) => number

  /** @param count how many there are. */
  constructor(count: number) {
    const pairs = Math.ceil(count / 2)
    const addresses = {
      powers: 0,
      logits: 8 * POWERS.length,
      weights: 16 * Math.ceil((POWERS.length + pairs) / 2),
    }
    const body = assemble(
      `${GIVEN.map(name => `given.${name} wide.splat =${name}`).join(' ')}
      loop
        at wide.load@logits greatest wide.subtract rate wide.multiply  :=x least wide.max =r
        half  r perUnit wide.multiply  wide.subtract wide.truncate :=n wide.convert =whole
        r  whole high wide.multiply  wide.add  whole low wide.multiply  wide.add =r
        r r wide.multiply =square
        n words.second 3 i32.shift-left  n words.first 3 i32.shift-left wide.load-once@powers
        wide.load-second@powers
        one  square  c2  square c4 wide.multiply  wide.add  wide.multiply  wide.add
        r  one  square  c3  square c5 wide.multiply  wide.add  wide.multiply  wide.add  wide.multiply
        wide.add wide.multiply
        x least wide.less and-not =weight
        to weight store@weights
        sum weight wide.add  weight weight wide.swap  wide.add =sum
        to 16 i32.add =to
        at 8 i32.add :=at bytes i32.less repeat
      end
      sum wide.first`,
      LOCALS,
      addresses,
    )
    const pages = Math.ceil((addresses.weights + 16 * pairs) / PAGE)
    const { run, memory } = wasmKernel<(bytes: number, ...numbers: number[]) => number>(pages, {
      name: 'exponentials',
      parameters: [TYPE.i32, ...GIVEN.map(() => TYPE.f64)],
      results: [TYPE.f64],
      vectors: GIVEN.length + VECTORS.length,
      integers: 2,
      body,
    })
    new Float64Array(memory.buffer, addresses.powers, POWERS.length).set(POWERS)
    this.#run = run
    this.#logits = new Float32Array(memory.buffer, addresses.logits, 2 * pairs).fill(Number.NEGATIVE_INFINITY)
    this.weights = new Float64Array(memory.buffer, addresses.weights, count)
  }

  /** Fills the weights and gives their sum, in order. @param greatest of the logits, finite. @param rate above 0. */
  of(logits: Float32Array, greatest: number, rate: number): number {
    this.#logits.set(logits)
    const numbers = { greatest, rate, ...COEFFICIENTS, ...TAYLOR }
    return this.#run(4 * this.#logits.length, ...GIVEN.map(name => numbers[name]))
  }
}

/**
 * Keys and values of the sequences being decoded: for each layer two buffers [rows, K, L, E]. Rows lie one
 * after the other, so the first n rows are a tensor. L grows with the longest sequence, in steps, so that
 * attention does not run over room that is not used yet.
 */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import type { Feeds, Fetched } from '../runtime/session.ts'
import { cacheNames } from './names.ts'

/** L is a multiple of this. Also a multiple of what vector instructions sum at once: see Decoder. */
const STEP = 64

/** Keys and values of a token in all layers. */
export function valuesPerToken({ layers, keyValueHeads, headDim }: ModelConfig): number {
  return 2 * layers * keyValueHeads * headDim
}

export class KeyValueCache {
  readonly #config: ModelConfig
  /** Keys and values of layer 0, of layer 1, … */
  #buffers: Float32Array[] = []
  #rows = 0
  #length = 0

  constructor(config: ModelConfig) {
    this.#config = config
  }

  /** L */
  get length(): number {
    return this.#length
  }

  /** Makes room for `rows` sequences that may grow to `longest` tokens. What was cached is lost. */
  reserve(rows: number, longest: number): void {
    const { layers, keyValueHeads, headDim } = this.#config
    this.#rows = rows
    this.#length = 0
    // Memory that is not written yet takes no room: the operating system gives it page by page.
    const size = rows * keyValueHeads * roundUp(longest) * headDim
    if (this.#buffers.length > 0 && this.#buffers[0]!.length >= size) return
    this.clear()
    this.#buffers = Array.from({ length: 2 * layers }, () => new Float32Array(size))
  }

  clear(): void {
    this.#buffers = []
  }

  /** Lets every row hold `length` tokens. */
  grow(length: number): void {
    const { keyValueHeads, headDim } = this.#config
    const before = this.#length
    if (length <= before) return
    this.#length = roundUp(length)
    const [from, to] = [before * headDim, this.#length * headDim]
    for (const buffer of this.#buffers) {
      // Blocks move up, so the last goes first.
      for (let block = this.#rows * keyValueHeads - 1; block > 0; block--) {
        buffer.copyWithin(block * to, block * from, (block + 1) * from)
      }
    }
  }

  /** The first `rows` rows, [rows, K, 1, L, E]. */
  rows(rows: number): Feeds {
    const { keyValueHeads, headDim } = this.#config
    const size = rows * keyValueHeads * this.#length * headDim
    const dims = [rows, keyValueHeads, 1, this.#length, headDim]
    return this.#feeds(buffer => new Tensor('float32', buffer.subarray(0, size), dims))
  }

  /** The first `length` tokens of one row, [1, K, 1, length, E]. */
  prefix(row: number, length: number): Feeds {
    const { keyValueHeads, headDim } = this.#config
    const size = length * headDim
    return this.#feeds(buffer => {
      const copy = new Float32Array(keyValueHeads * size)
      for (let head = 0; head < keyValueHeads; head++) {
        const start = this.#offset(row, head, 0)
        copy.set(buffer.subarray(start, start + size), head * size)
      }
      return new Tensor('float32', copy, [1, keyValueHeads, 1, length, headDim])
    })
  }

  /** Writes what a pass of B rows and S tokens made: row b of it into `rows[b]`, from `positions[b]` on. */
  append(fetched: Fetched, rows: readonly number[], positions: ArrayLike<number>): void {
    const { keyValueHeads, headDim } = this.#config
    this.#buffers.forEach((buffer, index) => {
      const { data, dims } = fetched[newName(index)]!
      const source = data as Float32Array
      const size = dims[3]! * headDim
      let from = 0
      for (const [b, row] of rows.entries()) {
        for (let head = 0; head < keyValueHeads; head++, from += size) {
          buffer.set(source.subarray(from, from + size), this.#offset(row, head, positions[b]!))
        }
      }
    })
  }

  /** Copies a row over another. */
  move(from: number, to: number): void {
    const [start, end, target] = [
      this.#offset(from, 0, 0),
      this.#offset(from + 1, 0, 0),
      this.#offset(to, 0, 0),
    ]
    for (const buffer of this.#buffers) buffer.copyWithin(target, start, end)
  }

  #offset(row: number, head: number, position: number): number {
    const { keyValueHeads, headDim } = this.#config
    return ((row * keyValueHeads + head) * this.#length + position) * headDim
  }

  #feeds(tensorOf: (buffer: Float32Array) => Tensor): Feeds {
    return Object.fromEntries(this.#buffers.map((buffer, index) => [name(index), tensorOf(buffer)]))
  }
}

function name(index: number): string {
  const { keys, values } = cacheNames(index >> 1)
  return index % 2 === 0 ? keys : values
}

function newName(index: number): string {
  const { newKeys, newValues } = cacheNames(index >> 1)
  return index % 2 === 0 ? newKeys : newValues
}

function roundUp(length: number): number {
  return Math.ceil(length / STEP) * STEP
}

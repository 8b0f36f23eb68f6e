/**
 * Keys and values of the sequences being decoded, in blocks of 16 tokens: for each layer's keys and for its values one
 * buffer [rows, K, L, E] of full blocks and one [rows, K, T, E] of the block that each row is filling, which each step
 * copies. Rows lie one after the other, so the first n rows are a tensor. L grows with the longest sequence.
 */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import type { Feeds, Fetched } from '../runtime/session.ts'
import { cacheNames } from './names.ts'

/** Tokens of a block. */
export const BLOCK = 16
/** Most tokens of a row in a step: a block has room for as many beyond its end, whose results are of no use. */
export const MOST_TOKENS = 16
/** T */
export const PLACES = BLOCK + MOST_TOKENS
/** T + L is a multiple of what vector instructions sum at once, so that a sum does not depend on L: see Decoder. */
const SUMMED_TOGETHER = 64
/** L is as much or 0: a product with fewer columns sums in larger steps where heads are wider than 128. */
const FEWEST = 128

/** L for so many tokens in full blocks. */
export function cacheLength(tokens: number): number {
  if (tokens === 0) return 0
  return SUMMED_TOGETHER * Math.ceil((Math.max(FEWEST, tokens) + PLACES) / SUMMED_TOGETHER) - PLACES
}

/** Where the block begins that holds a position. */
export function blockStart(position: number): number {
  return position - (position % BLOCK)
}

/** Keys and values of a token in all layers. */
export function valuesPerToken({ layers, keyValueHeads, headDim }: ModelConfig): number {
  return 2 * layers * keyValueHeads * headDim
}

interface Buffers {
  readonly full: Float32Array
  readonly block: Float32Array
}

export class KeyValueCache {
  readonly #config: ModelConfig
  /** Of the keys and values of layer 0, of layer 1, … */
  #buffers: Buffers[] = []
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
    const full = rows * keyValueHeads * cacheLength(blockStart(longest)) * headDim
    const block = rows * keyValueHeads * PLACES * headDim
    const [held] = this.#buffers
    if (held && held.full.length >= full && held.block.length >= block) return
    this.clear()
    this.#buffers = Array.from({ length: 2 * layers }, () => ({
      full: new Float32Array(full),
      block: new Float32Array(block),
    }))
  }

  clear(): void {
    this.#buffers = []
  }

  /** The first `rows` rows, [rows, K, L, E] and [rows, K, T, E]. */
  rows(rows: number): Feeds {
    const { keyValueHeads, headDim } = this.#config
    const feeds: Record<string, Tensor> = {}
    this.#buffers.forEach(({ full, block }, index) => {
      const { fullName, blockName } = namesOf(index)
      const tensor = (buffer: Float32Array, length: number) => {
        const dims = [rows, keyValueHeads, length, headDim]
        return new Tensor('float32', buffer.subarray(0, rows * keyValueHeads * length * headDim), dims)
      }
      feeds[fullName] = tensor(full, this.#length)
      feeds[blockName] = tensor(block, PLACES)
    })
    return feeds
  }

  /**
   * The first `length` tokens of some rows as if in full blocks, [rows + spare, K, length, E], and blocks of `places`
   * zeros, [rows + spare, K, places, E]. Spare rows are zeros.
   */
  prefixes(rows: readonly number[], length: number, places: number, spare = 0): Feeds {
    const { keyValueHeads, headDim } = this.#config
    const start = blockStart(length)
    const count = rows.length + spare
    const empty = new Float32Array(count * keyValueHeads * places * headDim)
    const zeros = new Tensor('float32', empty, [count, keyValueHeads, places, headDim])
    const feeds: Record<string, Tensor> = {}
    this.#buffers.forEach(({ full, block }, index) => {
      const { fullName, blockName } = namesOf(index)
      const copy = new Float32Array(count * keyValueHeads * length * headDim)
      let at = 0
      for (const row of rows) {
        for (let head = 0; head < keyValueHeads; head++) {
          const [from, place] = [this.#offset(row, head, 0), this.#place(row, head, 0)]
          copy.set(full.subarray(from, from + start * headDim), at)
          copy.set(block.subarray(place, place + (length - start) * headDim), at + start * headDim)
          at += length * headDim
        }
      }
      feeds[fullName] = new Tensor('float32', copy, [count, keyValueHeads, length, headDim])
      feeds[blockName] = zeros
    })
    return feeds
  }

  /**
   * Writes what a pass of B rows made: of row b of it the first `counts[b]` tokens, into `rows[b]` from `positions[b]`
   * on. Blocks that they fill become full ones.
   */
  append(
    fetched: Fetched,
    rows: readonly number[],
    positions: ArrayLike<number>,
    counts: ArrayLike<number>,
  ): void {
    const { keyValueHeads: K, headDim } = this.#config
    this.#grow(Math.max(...rows.map((_, b) => blockStart(positions[b]! + counts[b]!))))
    this.#buffers.forEach(({ full, block }, index) => {
      const { data, dims } = fetched[namesOf(index).newName]!
      const source = data as Float32Array
      const tokens = dims[2]!
      for (const [b, row] of rows.entries()) {
        const end = positions[b]! + counts[b]!
        for (let head = 0; head < K; head++) {
          let from = (b * K + head) * tokens * headDim
          for (let at = positions[b]!; at < end; ) {
            const start = blockStart(at)
            const until = Math.min(end, start + BLOCK)
            const size = (until - at) * headDim
            block.set(source.subarray(from, from + size), this.#place(row, head, at - start))
            from += size
            at = until
            if (until < start + BLOCK) continue
            const place = this.#place(row, head, 0)
            full.set(block.subarray(place, place + BLOCK * headDim), this.#offset(row, head, start))
          }
        }
      }
    })
  }

  /** Copies a row over another. */
  move(from: number, to: number): void {
    for (const { full, block } of this.#buffers) {
      full.copyWithin(this.#offset(to, 0, 0), this.#offset(from, 0, 0), this.#offset(from + 1, 0, 0))
      block.copyWithin(this.#place(to, 0, 0), this.#place(from, 0, 0), this.#place(from + 1, 0, 0))
    }
  }

  /** Lets every row hold full blocks of `length` tokens. */
  #grow(length: number): void {
    const { keyValueHeads, headDim } = this.#config
    const before = this.#length
    if (length <= before) return
    this.#length = cacheLength(length)
    const [from, to] = [before * headDim, this.#length * headDim]
    for (const { full } of this.#buffers) {
      // Rows move up, so the last goes first.
      for (let row = this.#rows * keyValueHeads - 1; row > 0; row--) {
        full.copyWithin(row * to, row * from, (row + 1) * from)
      }
    }
  }

  #offset(row: number, head: number, position: number): number {
    const { keyValueHeads, headDim } = this.#config
    return ((row * keyValueHeads + head) * this.#length + position) * headDim
  }

  #place(row: number, head: number, place: number): number {
    const { keyValueHeads, headDim } = this.#config
    return ((row * keyValueHeads + head) * PLACES + place) * headDim
  }
}

function namesOf(index: number) {
  const names = cacheNames(index >> 1)
  return index % 2 === 0
    ? { fullName: names.keys, blockName: names.blockKeys, newName: names.newKeys }
    : { fullName: names.values, blockName: names.blockValues, newName: names.newValues }
}

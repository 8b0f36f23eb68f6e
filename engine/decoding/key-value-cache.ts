/**
 * Keys and values of the sequences being decoded: for each layer two buffers [rows, K, L, E], that the graph
 * reads and extends in place (past and present are one buffer). Rows lie one after the other, so the first n
 * rows, or a single row, are tensors themselves.
 */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import { cacheNames } from './decode-graph.ts'

export interface CacheTensors {
  readonly past: Readonly<Record<string, Tensor>>
  readonly present: Readonly<Record<string, Tensor>>
}

export class KeyValueCache {
  readonly #config: ModelConfig
  /** Keys and values of layer 0, of layer 1, … */
  #buffers: Float32Array[] = []
  #length = 0

  constructor(config: ModelConfig) {
    this.#config = config
  }

  /** Makes room for `rows` sequences of up to `length` tokens. What was cached is lost. */
  reserve(rows: number, length: number): void {
    const { layers, keyValueHeads, headDim } = this.#config
    this.#length = length
    const size = rows * keyValueHeads * length * headDim
    if (this.#buffers.length > 0 && this.#buffers[0]!.length >= size) return
    this.#buffers = []
    this.#buffers = Array.from({ length: 2 * layers }, () => new Float32Array(size))
  }

  /** Rows first … first + count − 1. */
  tensors(first: number, count: number): CacheTensors {
    const { keyValueHeads, headDim } = this.#config
    const rowSize = this.#rowSize()
    const dims = [count, keyValueHeads, this.#length, headDim]
    const past: Record<string, Tensor> = {}
    const present: Record<string, Tensor> = {}
    this.#buffers.forEach((buffer, index) => {
      const tensor = new Tensor('float32', buffer.subarray(first * rowSize, (first + count) * rowSize), dims)
      const names = cacheNames(index >> 1)
      past[index % 2 === 0 ? names.pastKey : names.pastValue] = tensor
      present[index % 2 === 0 ? names.presentKey : names.presentValue] = tensor
    })
    return { past, present }
  }

  /** Copies a row over another. */
  move(from: number, to: number): void {
    const rowSize = this.#rowSize()
    for (const buffer of this.#buffers) buffer.copyWithin(to * rowSize, from * rowSize, (from + 1) * rowSize)
  }

  #rowSize(): number {
    return this.#config.keyValueHeads * this.#length * this.#config.headDim
  }
}

/**
 * Memory for activations, used again by every pass: fresh tensors would be cleared, touched for the first time
 * and collected at each. A buffer grows to the largest pass seen.
 */
import { Tensor } from 'onnxruntime-node'
import type { Dim } from '../graph/value.ts'

export class Buffers {
  readonly #arrays = new Map<string, Float32Array>()

  /** A tensor on the buffer of that name: it is valid until the name is asked for again. Its data is arbitrary. */
  tensor(name: string, dims: readonly number[]): Tensor {
    const size = dims.reduce((product, dim) => product * dim, 1)
    let array = this.#arrays.get(name)
    if (!array || array.length < size) {
      array = new Float32Array(size)
      this.#arrays.set(name, array)
    }
    return new Tensor('float32', array.subarray(0, size), dims)
  }
}

/** The lengths of a symbolic shape; `2·T` is twice T. */
export function resolveShape(shape: readonly Dim[], lengths: Readonly<Record<string, number>>): number[] {
  return shape.map(dim => {
    if (typeof dim === 'number') return dim
    return dim.split('·').reduce((product, factor) => product * (lengths[factor] ?? Number(factor)), 1)
  })
}

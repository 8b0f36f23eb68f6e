/**
 * The running sum of gradients: one f32 tensor for each trained parameter, written in place. A sum that nothing was
 * added to is empty rather than 0: its first gradient is written over what its memory holds, which nobody has to clear.
 */
import { Tensor } from 'onnxruntime-node'

export class GradientSums {
  readonly #tensors = new Map<string, Tensor>()
  readonly #empty = new Set<string>()

  constructor(shapes: ReadonlyMap<string, readonly number[]>) {
    for (const [name, shape] of shapes) {
      const length = shape.reduce((product, dim) => product * dim, 1)
      this.#tensors.set(name, new Tensor('float32', new Float32Array(length), shape))
    }
    this.clear()
  }

  has(name: string): boolean {
    return this.#tensors.has(name)
  }

  isEmpty(name: string): boolean {
    return this.#empty.has(name)
  }

  /** The tensor of an empty sum, its data arbitrary: the first gradient is to be written there. */
  begin(name: string): Tensor {
    this.#empty.delete(name)
    return this.#tensors.get(name)!
  }

  /** The sum so far, to be added to; 0 where it was empty. */
  of(name: string): Tensor {
    const tensor = this.#tensors.get(name)!
    if (this.#empty.delete(name)) (tensor.data as Float32Array).fill(0)
    return tensor
  }

  data(name: string): Float32Array {
    return this.of(name).data as Float32Array
  }

  names(): IterableIterator<string> {
    return this.#tensors.keys()
  }

  clear(): void {
    for (const name of this.#tensors.keys()) this.#empty.add(name)
  }
}

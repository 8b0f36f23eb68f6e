/** The running sum of gradients: one f32 tensor for each trained parameter, written in place. */
import { Tensor } from 'onnxruntime-node'

export class GradientSums {
  readonly #tensors = new Map<string, Tensor>()

  constructor(shapes: ReadonlyMap<string, readonly number[]>) {
    for (const [name, shape] of shapes) {
      const length = shape.reduce((product, dim) => product * dim, 1)
      this.#tensors.set(name, new Tensor('float32', new Float32Array(length), shape))
    }
  }

  has(name: string): boolean {
    return this.#tensors.has(name)
  }

  of(name: string): Tensor {
    return this.#tensors.get(name)!
  }

  data(name: string): Float32Array {
    return this.of(name).data as Float32Array
  }

  names(): IterableIterator<string> {
    return this.#tensors.keys()
  }

  clear(): void {
    for (const tensor of this.#tensors.values()) (tensor.data as Float32Array).fill(0)
  }
}

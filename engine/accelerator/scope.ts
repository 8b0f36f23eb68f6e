/** Tensors of a device that are freed together: what a step makes and only the step needs. */
import type { Tensor } from 'onnxruntime-node'
import type { Device } from './device.ts'

export class Scope {
  readonly #device: Pick<Device, 'free'>
  readonly #tensors = new Set<Tensor>()

  constructor(device: Pick<Device, 'free'>) {
    this.#device = device
  }

  own(tensor: Tensor): Tensor {
    this.#tensors.add(tensor)
    return tensor
  }

  /** Hands tensors over to the caller, who frees them. */
  keep<T extends Tensor>(tensor: T): T {
    if (!this.#tensors.delete(tensor)) throw new Error('a tensor is kept that is not the scope’s')
    return tensor
  }

  /** Frees a tensor before the scope ends. */
  free(tensor: Tensor): void {
    this.#device.free(this.keep(tensor))
  }

  close(): void {
    for (const tensor of this.#tensors) this.#device.free(tensor)
    this.#tensors.clear()
  }
}

/** What `body` makes in its scope is freed when it ends, however it ends. */
export async function scoped<T>(
  device: Pick<Device, 'free'>,
  body: (scope: Scope) => Promise<T>,
): Promise<T> {
  const scope = new Scope(device)
  try {
    return await body(scope)
  } finally {
    scope.close()
  }
}

/** The running sum of gradients on a device. Tensors there are not written in place: each addition makes the next sum. */
import { Tensor } from 'onnxruntime-node'
import type { Device } from './device.ts'
import type { DeviceSessions } from './device-sessions.ts'
import { zerosGraph } from './graphs.ts'
import { Resident } from './resident.ts'
import { Scope } from './scope.ts'

export class GradientSums {
  readonly #device: Device
  readonly #sums = new Map<string, { readonly dims: readonly number[]; readonly parts: Tensor[] }>()

  private constructor(device: Device) {
    this.#device = device
  }

  /** Zeros for each of the parameters, in the same parts. */
  static async zeros(
    device: Device,
    sessions: DeviceSessions,
    parameters: ReadonlyMap<string, Resident>,
  ): Promise<GradientSums> {
    const sums = new GradientSums(device)
    try {
      for (const [name, { dims, parts }] of parameters) {
        const zeros: Tensor[] = []
        sums.#sums.set(name, { dims, parts: zeros })
        for (const part of parts) zeros.push(await zerosLike(device, sessions, part.dims))
      }
    } catch (error) {
      sums.free()
      throw error
    }
    return sums
  }

  has(name: string): boolean {
    return this.#sums.has(name)
  }

  names(): IterableIterator<string> {
    return this.#sums.keys()
  }

  parts(name: string): readonly Tensor[] {
    return this.#sums.get(name)!.parts
  }

  /** The only part. */
  whole(name: string): Tensor {
    return this.parts(name)[0]!
  }

  /** Takes the next sum from the scope and frees the one before. */
  replace(name: string, next: Tensor, scope: Scope, part = 0): void {
    const { parts } = this.#sums.get(name)!
    const before = parts[part]!
    parts[part] = scope.keep(next)
    this.#device.free(before)
  }

  /** As a parameter that the sums go on owning. */
  resident(name: string): Resident {
    const { dims, parts } = this.#sums.get(name)!
    return new Resident(this.#device, dims, parts)
  }

  /** Frees one sum, which is not used again. */
  drop(name: string): void {
    for (const part of this.parts(name)) this.#device.free(part)
    this.#sums.delete(name)
  }

  free(): void {
    for (const name of [...this.names()]) this.drop(name)
  }
}

/** Zeros of a shape; the caller frees them. */
export async function zerosLike(
  device: Device,
  sessions: DeviceSessions,
  dims: readonly number[],
): Promise<Tensor> {
  const rank = dims.length
  const session = await sessions.get(`zeros ${rank}`, () => zerosGraph(rank))
  const scope = new Scope(device)
  const { y } = await session.run(
    { shape: new Tensor('int64', BigInt64Array.from(dims, BigInt), [rank]) },
    scope,
  )
  return scope.keep(y!)
}

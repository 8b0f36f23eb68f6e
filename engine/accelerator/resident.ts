/** Parameters on a device, by name. A matrix that is larger than a kernel can be given is cut into runs of rows. */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import { EMBEDDING, headName } from '../weights/parameter-shapes.ts'
import type { Weights } from '../weights/weights.ts'
import type { Device } from './device.ts'
import { type Scope, scoped } from './scope.ts'

export class Resident {
  readonly dims: readonly number[]
  readonly size: number
  /** Runs of rows, in order; one where it is whole. */
  readonly parts: readonly Tensor[]
  readonly #device: Device
  #freed = false

  constructor(device: Device, dims: readonly number[], parts: readonly Tensor[]) {
    this.#device = device
    this.dims = dims
    this.size = dims.reduce((product, length) => product * length, 1)
    this.parts = parts
  }

  /** The only part. */
  get whole(): Tensor {
    if (this.parts.length !== 1) throw new Error(`a matrix [${this.dims.join()}] is in parts, not whole`)
    return this.parts[0]!
  }

  /** May be called again. */
  free(): void {
    if (this.#freed) return
    this.#freed = true
    for (const part of this.parts) this.#device.free(part)
  }
}

export type ResidentWeights = ReadonlyMap<string, Resident>

/** Runs of rows [from, to) of like length, each of at most `bytes`, or of one row. */
export function rowRuns(rows: number, rowBytes: number, bytes: number): readonly [number, number][] {
  const count = Math.ceil(rows / Math.max(1, Math.floor(bytes / rowBytes)))
  const length = Math.ceil(rows / count)
  return Array.from({ length: Math.ceil(rows / length) }, (_, run) => [
    run * length,
    Math.min(rows, (run + 1) * length),
  ])
}

/** Which parameters are cut: embedding and output head, whose rows are the vocabulary's. */
function isCut(config: ModelConfig, name: string): boolean {
  return name === EMBEDDING || name === headName(config)
}

/** Copies of weights on the device: all of them or, where it fails, none. */
export function uploadWeights(
  device: Device,
  config: ModelConfig,
  weights: Weights,
): Promise<Map<string, Resident>> {
  return scoped(device, async scope => {
    const resident = new Map<string, Resident>()
    for (const [name, tensor] of weights) {
      const parts: Tensor[] = []
      for (const part of isCut(config, name) ? runsOf(tensor, device.bindingBytes) : [tensor]) {
        parts.push(scope.own(await device.upload(part)))
      }
      resident.set(name, new Resident(device, tensor.dims, parts))
    }
    return keepAll(scope, resident)
  })
}

/** Runs of a matrix's rows, as views, each of at most `bytes`. */
function runsOf({ dims, data }: Tensor, bytes: number): Tensor[] {
  const [rows, width] = dims as [number, number]
  return rowRuns(rows, 4 * width, bytes).map(([from, to]) => {
    const run = (data as Float32Array).subarray(from * width, to * width)
    return new Tensor('float32', run, [to - from, width])
  })
}

/** Hands the scope's tensors of these parameters over to the caller. */
export function keepAll<W extends ResidentWeights>(scope: Scope, weights: W): W {
  for (const { parts } of weights.values()) for (const part of parts) scope.keep(part)
  return weights
}

/** A copy on the CPU. */
export async function downloadParameter(device: Device, { dims, size, parts }: Resident): Promise<Tensor> {
  if (parts.length === 1 && device.kind === 'webgpu') return device.download(parts[0]!)
  const data = new Float32Array(size)
  let offset = 0
  for (const part of parts) {
    data.set((await device.download(part)).data as Float32Array, offset)
    offset += part.size
  }
  return new Tensor('float32', data, dims)
}

export async function downloadWeights(
  device: Device,
  weights: ResidentWeights,
): Promise<Map<string, Tensor>> {
  const fetched = new Map<string, Tensor>()
  for (const [name, resident] of weights) fetched.set(name, await downloadParameter(device, resident))
  return fetched
}

/** Frees weights but for the parameters that `others` hold too. */
export function freeWeights(weights: ResidentWeights, others: Iterable<ResidentWeights> = []): void {
  const held = new Set([...others].flatMap(other => [...other.values()]))
  for (const resident of weights.values()) if (!held.has(resident)) resident.free()
}

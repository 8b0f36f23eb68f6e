/**
 * Devices that onnxruntime runs graphs on.
 *
 * With WebGPU tensors are resident: outputs stay in the device's memory and are fed to the next run. CUDA's outputs
 * come to the CPU and go back with each run, since onnxruntime-node keeps only WebGPU's buffers on the device
 * (OrtValueToNapiValue in its tensor_helper.cc); so does the CPU itself, which serves to test what is built on this.
 */
import type { Tensor } from 'onnxruntime-node'
import { GraspError } from '../../errors/grasp-error.ts'
import type { elementTypeCode } from '../onnx/element-type.ts'
import { GraphBuilder } from '../onnx/graph-builder.ts'
import { type Feeds, type Fetched, Session } from '../runtime/session.ts'
import type { Device, DeviceSession } from './device.ts'
import { cudaIsInstalled, missingDevice } from './missing-device.ts'
import { Scope } from './scope.ts'

/** What every WebGPU device can bind at least: the default limit of maxStorageBufferBindingSize in WebGPU's table of limits. */
const LEAST_BINDING_BYTES = 128 * 2 ** 20

export interface OnnxDeviceOptions {
  readonly kind: Device['kind']
  readonly threads: number
  readonly bindingBytes?: number | undefined
}

/** @throws GraspError ENGINE_FAILED, saying what is missing, when the device cannot be used. */
export async function openOnnxDevice(options: OnnxDeviceOptions): Promise<Device> {
  const device = new OnnxDevice(options)
  await device.probe()
  return device
}

class OnnxDevice implements Device {
  readonly kind: Device['kind']
  readonly bindingBytes: number
  readonly #threads: number
  readonly #resident: boolean
  readonly #sessions = new Set<Session>()
  readonly #live = new Set<Tensor>()
  readonly #copies = new Map<string, Promise<DeviceSession>>()

  constructor({ kind, threads, bindingBytes = LEAST_BINDING_BYTES }: OnnxDeviceOptions) {
    this.kind = kind
    this.bindingBytes = bindingBytes
    this.#threads = threads
    this.#resident = kind === 'webgpu'
  }

  get live(): number {
    return this.#live.size
  }

  /** Loads a first graph: only then is the device asked for. */
  async probe(): Promise<void> {
    try {
      // onnxruntime would write to standard error what it does not find.
      if (this.kind === 'cuda' && !cudaIsInstalled()) throw new Error('libraries of the provider are missing')
      await this.#copy('float32', 1, 'down')
    } catch (cause) {
      throw new GraspError('ENGINE_FAILED', missingDevice(this.kind, cause), { cause })
    }
  }

  async session(
    name: string,
    model: Uint8Array,
    resident: 'all' | readonly string[] = 'all',
  ): Promise<DeviceSession> {
    const provider = { name: this.kind, resident: this.#resident ? resident : [] }
    const session = await Session.create(name, model, { threads: this.#threads, provider })
    this.#sessions.add(session)
    const stays = (output: string) => resident === 'all' || resident.includes(output)
    return {
      run: (feeds, scope, over) =>
        over ? this.#runOver(session, feeds, over) : this.#run(session, feeds, scope, stays),
      release: async () => {
        this.#sessions.delete(session)
        await session.release()
      },
    }
  }

  async upload(tensor: Tensor): Promise<Tensor> {
    const scope = new Scope(this)
    const session = await this.#copy(tensor.type, tensor.dims.length, 'up')
    const { y } = await session.run({ x: tensor }, scope)
    return scope.keep(y!)
  }

  async download(tensor: Tensor): Promise<Tensor> {
    if (tensor.location === 'cpu') return tensor
    const session = await this.#copy(tensor.type, tensor.dims.length, 'down')
    // `getData` of a resident tensor crashes the process; outputs that come to the CPU are copied well.
    const { y } = await session.run({ x: tensor }, new Scope(this))
    return y!
  }

  free(tensor: Tensor): void {
    if (!this.#live.delete(tensor)) throw new Error('a tensor is freed that does not live on the device')
    tensor.dispose()
  }

  async close(): Promise<void> {
    for (const session of this.#sessions) await session.release()
    this.#sessions.clear()
  }

  async #run(
    session: Session,
    feeds: Feeds,
    scope: Scope,
    stays: (output: string) => boolean,
  ): Promise<Fetched> {
    const fetched = await session.run(feeds).catch(error => {
      throw tooLarge(this.kind, error)
    })
    for (const [name, tensor] of Object.entries(fetched)) {
      if (!stays(name)) continue
      this.#live.add(tensor)
      scope.own(tensor)
    }
    return fetched
  }

  async #runOver(session: Session, feeds: Feeds, over: Feeds): Promise<Fetched> {
    const outputs = Object.fromEntries(session.outputs.map(name => [name, over[name] ?? null]))
    const fetched = await session.run(feeds, outputs).catch(error => {
      throw tooLarge(this.kind, error)
    })
    const others = Object.entries(fetched).filter(([name, tensor]) => {
      if (!over[name]) return true
      // Another name for the same memory, which is held as long as one of them is.
      if (tensor !== over[name] && tensor.location === 'gpu-buffer') tensor.dispose()
      return false
    })
    return Object.fromEntries(others)
  }

  /** Sessions that copy tensors to the device and back. */
  #copy(type: Tensor['type'], rank: number, way: 'up' | 'down'): Promise<DeviceSession> {
    const name = `${way} ${type} ${rank}`
    let session = this.#copies.get(name)
    if (!session) {
      session = this.session(name, copyGraph(type as 'float32', rank), way === 'up' ? 'all' : [])
      this.#copies.set(name, session)
    }
    return session
  }
}

/** What a device says of tensors that it has no room for. */
const NO_ROOM =
  /out of memory|OutOfMemory|max buffer size|Too many storage buffers|narrowing_error|bad_alloc/i

/** The error, with what to do where the device had no room. */
function tooLarge(kind: Device['kind'], error: unknown): unknown {
  if (!(error instanceof GraspError) || !NO_ROOM.test(error.message)) return error
  const advice =
    `The ${kind} device has no room for this: lower model.tokensPerPass, model.sequencesPerPass or rollout.lag, train ` +
    'an adapter (training.lora), or use a device with more memory.'
  return new GraspError('ENGINE_FAILED', `${error.message}. ${advice}`, { cause: error })
}

function copyGraph(type: Parameters<typeof elementTypeCode>[0], rank: number): Uint8Array {
  const builder = new GraphBuilder('copy')
  const shape = Array.from({ length: rank }, (_, axis) => `d${axis}`)
  builder.output(builder.node('Identity', [builder.input('x', type, shape)]), type, shape, 'y')
  return builder.build()
}

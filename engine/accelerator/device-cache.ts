/**
 * Keys and values of the sequences that are decoded on a device: for each layer two tensors [R·K, L, E], written in
 * place.
 */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import type { Feeds, Fetched } from '../runtime/session.ts'
import { allCacheNames, appendGraph, nextName } from './decode-graphs.ts'
import type { Device } from './device.ts'
import { DeviceSessions } from './device-sessions.ts'
import { zerosLike } from './gradient-sums.ts'
import { scoped } from './scope.ts'

/** L is a multiple of this. */
const STEP = 64

export class DeviceCache {
  readonly #device: Device
  readonly #config: ModelConfig
  readonly #sessions: DeviceSessions
  readonly #names: readonly string[]
  #tensors: ReadonlyMap<string, Tensor> = new Map()
  #length = 0

  constructor(device: Device, config: ModelConfig) {
    this.#device = device
    this.#config = config
    this.#sessions = new DeviceSessions(device)
    this.#names = allCacheNames(config)
  }

  /** L */
  get length(): number {
    return this.#length
  }

  get feeds(): Feeds {
    return Object.fromEntries(this.#tensors)
  }

  /** The same tensors by the names of the outputs that are written over them. */
  get over(): Feeds {
    return Object.fromEntries([...this.#tensors].map(([name, tensor]) => [nextName(name), tensor]))
  }

  /** Makes room for `rows` sequences of up to `longest` tokens. What was cached is lost. */
  async reserve(rows: number, longest: number): Promise<void> {
    this.free()
    const { keyValueHeads, headDim } = this.#config
    this.#length = Math.ceil(longest / STEP) * STEP
    const tensors = new Map<string, Tensor>()
    this.#tensors = tensors
    for (const name of this.#names) {
      const dims = [rows * keyValueHeads, this.#length, headDim]
      tensors.set(name, await zerosLike(this.#device, this.#sessions, dims))
    }
  }

  /** The cache's rows of a sequence, [K] int32. */
  row(row: number): Tensor {
    const { keyValueHeads: K } = this.#config
    return new Tensor(
      'int32',
      Int32Array.from({ length: K }, (_, head) => row * K + head),
      [K],
    )
  }

  /** Where a token of each row goes: [R·K, 2] int64. */
  places(positions: Int32Array): Tensor {
    const { keyValueHeads: K } = this.#config
    const places = new BigInt64Array(positions.length * K * 2)
    for (let row = 0; row < positions.length * K; row++) {
      places[2 * row] = BigInt(row)
      places[2 * row + 1] = BigInt(positions[Math.floor(row / K)]!)
    }
    return new Tensor('int64', places, [positions.length * K, 2])
  }

  /** Writes what a pass of `count` tokens made, by the names of the cache's tensors, into a row from `start` on. */
  async append(made: Fetched, row: number, start: number, count: number): Promise<void> {
    const { keyValueHeads: K } = this.#config
    const places = new BigInt64Array(K * count * 2)
    for (let head = 0, at = 0; head < K; head++) {
      for (let token = 0; token < count; token++) {
        places[at++] = BigInt(row * K + head)
        places[at++] = BigInt(start + token)
      }
    }
    const session = await this.#sessions.get('append', () => appendGraph(this.#config), [])
    await scoped(this.#device, async scope => {
      const feeds: Record<string, Tensor> = {
        ...this.feeds,
        places: new Tensor('int64', places, [K, count, 2]),
      }
      for (const name of this.#names) feeds[`made.${name}`] = made[nextName(name)]!
      await session.run(feeds, scope, this.over)
    })
  }

  free(): void {
    for (const tensor of this.#tensors.values()) this.#device.free(tensor)
    this.#tensors = new Map()
  }
}

/** Token embedding and its gradient on a device. */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import type { Batch } from '../learner/batches.ts'
import { EMBEDDING } from '../weights/parameter-shapes.ts'
import type { Device } from './device.ts'
import { DeviceSessions } from './device-sessions.ts'
import type { GradientSums } from './gradient-sums.ts'
import { embeddingGradientGraph, embedGraph } from './graphs.ts'
import type { ResidentWeights } from './resident.ts'
import { type Scope, scoped } from './scope.ts'

export class DeviceEmbedding {
  readonly #device: Device
  readonly #config: ModelConfig
  readonly #scale: number
  readonly #sessions: DeviceSessions

  constructor(device: Device, config: ModelConfig) {
    this.#device = device
    this.#config = config
    this.#scale = config.embeddingScale ?? 1
    this.#sessions = new DeviceSessions(device)
  }

  /**
   * @param rows token ids
   * @returns [B, T, D] of the batch's size, of the scope. Padding is embedded as token 0: no real token looks at it,
   * and no gradient comes to it.
   */
  async embed(
    weights: ResidentWeights,
    rows: readonly Int32Array[],
    batch: Pick<Batch, 'rows' | 'length'>,
    scope: Scope,
  ): Promise<Tensor> {
    const { parts } = weights.get(EMBEDDING)!
    const ids = padded(rows, batch)
    const dims = [batch.rows, batch.length]
    if (parts.length === 1) {
      const session = await this.#sessions.get('embed', () => embedGraph(this.#scale))
      const { y } = await session.run({ table: parts[0]!, ids: new Tensor('int32', ids, dims) }, scope)
      return y!
    }
    let sum: Tensor | undefined
    let start = 0
    for (const table of parts) {
      const end = start + table.dims[0]!
      const own = (id: number) => id >= start && id < end
      const local = ids.map(id => (own(id) ? id - start : 0))
      const mask = Float32Array.from(ids, id => (own(id) ? 1 : 0))
      const which = sum ? 'next' : 'first'
      const session = await this.#sessions.get(`embed ${which}`, () => embedGraph(this.#scale, which))
      const feeds = {
        table,
        ids: new Tensor('int32', local, dims),
        mask: new Tensor('float32', mask, [...dims, 1]),
        ...(sum && { sum }),
      }
      const { y } = await session.run(feeds, scope)
      if (sum) scope.free(sum)
      sum = y!
      start = end
    }
    return sum!
  }

  /** Adds the gradient dx [B, T, D] at `embed`'s result onto the gradient of the table. */
  async addGradient(
    sums: GradientSums,
    rows: readonly Int32Array[],
    batch: Pick<Batch, 'rows' | 'length'>,
    dx: Tensor,
  ): Promise<void> {
    const places = placesOf(rows, batch.length)
    const tokens = batch.rows * batch.length
    const session = await this.#sessions.get('embedding gradient', () =>
      embeddingGradientGraph(this.#config.hiddenSize, this.#scale),
    )
    // The groups' product takes a matrix [groups, tokens].
    const most = Math.max(1, Math.floor(this.#device.bindingBytes / (4 * tokens)))
    let start = 0
    for (const [part, { dims }] of [...sums.parts(EMBEDDING).entries()]) {
      const end = start + dims[0]!
      const ids = [...places.keys()].filter(id => id >= start && id < end).sort((a, b) => a - b)
      for (let from = 0; from < ids.length; from += most) {
        const some = ids.slice(from, from + most)
        const group = new Int32Array(tokens).fill(-1)
        for (const [number, id] of some.entries()) for (const place of places.get(id)!) group[place] = number
        const local = some.map(id => id - start)
        await scoped(this.#device, async scope => {
          const feeds = {
            sum: sums.parts(EMBEDDING)[part]!,
            dx,
            group: new Tensor('int32', group, [1, tokens]),
            groups: new Tensor('int32', Int32Array.from(some.keys()), [some.length, 1]),
            ids: new Tensor('int32', Int32Array.from(local), [some.length]),
            places: new Tensor('int64', BigInt64Array.from(local, BigInt), [some.length, 1]),
          }
          const { y } = await session.run(feeds, scope)
          sums.replace(EMBEDDING, y!, scope, part)
        })
      }
      start = end
    }
  }
}

function padded(rows: readonly Int32Array[], batch: Pick<Batch, 'rows' | 'length'>): Int32Array {
  const ids = new Int32Array(batch.rows * batch.length)
  for (const [row, own] of rows.entries()) ids.set(own, row * batch.length)
  return ids
}

/** Where each id stands among the B · T places. */
function placesOf(rows: readonly Int32Array[], length: number): Map<number, number[]> {
  const places = new Map<number, number[]>()
  for (const [row, ids] of rows.entries()) {
    for (const [position, id] of ids.entries()) {
      const place = row * length + position
      const known = places.get(id)
      if (known) known.push(place)
      else places.set(id, [place])
    }
  }
  return places
}

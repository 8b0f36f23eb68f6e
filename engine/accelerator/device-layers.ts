/** Runs a batch of rows through the decoder layers on a device: what learner/layers.ts does on the CPU. */
import { Tensor } from 'onnxruntime-node'
import { type ModelConfig, windowOf } from '../architectures/config.ts'
import { layerParameters } from '../architectures/layer-parameters.ts'
import { firstPositions, type RotaryTables, rotaryTables } from '../architectures/rotary-tables.ts'
import { resolveShape } from '../learner/buffers.ts'
import { trainedShapes } from '../learner/layer-graphs.ts'
import type { LayerTrace } from '../learner/layers.ts'
import { MASKED } from '../learner/positions.ts'
import type { LoraOptions } from '../port.ts'
import type { Feeds } from '../runtime/session.ts'
import { layerParameter } from '../weights/parameter-shapes.ts'
import type { Device } from './device.ts'
import { DeviceSessions } from './device-sessions.ts'
import type { GradientSums } from './gradient-sums.ts'
import { type DeviceLayerGraphs, layerGraphs } from './layer-graphs.ts'
import type { ResidentWeights } from './resident.ts'
import type { Scope } from './scope.ts'
import { uploadAll } from './upload-all.ts'

export class DeviceLayers {
  readonly #device: Device
  readonly #config: ModelConfig
  readonly #budget: number
  readonly #graphs: DeviceLayerGraphs
  readonly #sessions: DeviceSessions
  readonly #parameters: readonly string[]
  /** Names behind `model.layers.N.`: the parameters, or the factors of an adapter. */
  readonly #trained: readonly string[]
  readonly #adapted: boolean
  readonly #tables: RotaryTables
  /** Of the latest length. */
  #positions: { readonly length: number; readonly feeds: Readonly<Record<string, Tensor>> } | undefined

  /** @param budget most bytes kept of activations between the forward and the backward pass */
  constructor(device: Device, config: ModelConfig, budget: number, lora?: LoraOptions) {
    this.#device = device
    this.#config = config
    this.#budget = budget
    this.#graphs = layerGraphs(config, lora)
    this.#sessions = new DeviceSessions(device)
    this.#parameters = [...layerParameters(config).keys()]
    this.#trained = [...trainedShapes(config, lora).keys()]
    this.#adapted = lora !== undefined
    this.#tables = rotaryTables(config)
  }

  /**
   * @param x [B, T, D], of the scope
   * @returns the last layer's output, [B, T, D], of the scope
   */
  async forward(weights: ResidentWeights, x: Tensor, scope: Scope): Promise<Tensor> {
    const session = await this.#sessions.get('layer forward', () => this.#graphs.forward)
    let current = x
    for (let layer = 0; layer < this.#config.layers; layer++) {
      const feeds = await this.#feeds(weights, layer, current)
      const { y } = await session.run(feeds, scope)
      scope.free(current)
      current = y!
    }
    return current
  }

  /** As `forward`, with what `backward` needs of each layer. */
  async trace(
    weights: ResidentWeights,
    x: Tensor,
    scope: Scope,
  ): Promise<{ y: Tensor; traces: LayerTrace[] }> {
    const traces: LayerTrace[] = []
    const bytes = this.#keptBytes(x.dims)
    let current = x
    for (let layer = 0; layer < this.#config.layers; layer++) {
      const keep = (layer + 1) * bytes <= this.#budget
      const session = keep
        ? await this.#sessions.get('layer forward for training', () => this.#graphs.training)
        : await this.#sessions.get('layer forward', () => this.#graphs.forward)
      const { y, ...kept } = await session.run(await this.#feeds(weights, layer, current, keep), scope)
      traces.push(keep ? { x: current, kept } : { x: current })
      current = y!
    }
    return { y: current, traces }
  }

  /**
   * Frees what was kept.
   * @param dy gradient at the last layer's output, [B, T, D], of the scope
   * @returns the gradient at the first layer's input, of the scope
   */
  async backward(
    weights: ResidentWeights,
    traces: readonly LayerTrace[],
    dy: Tensor,
    sums: GradientSums,
    scope: Scope,
  ): Promise<Tensor> {
    let current = dy
    for (const [layer, { x, kept }] of [...traces.entries()].reverse()) {
      const feeds: Record<string, Tensor> = {
        ...(await this.#feeds(weights, layer, x, true)),
        ...kept,
        dy: current,
      }
      for (const name of this.#trained) feeds[`sum.${name}`] = sums.whole(layerParameter(layer, name))
      const session = kept
        ? await this.#sessions.get('layer backward', () => this.#graphs.backward)
        : await this.#sessions.get('layer recomputing backward', () => this.#graphs.recomputing)
      const fetched = await session.run(feeds, scope)
      for (const name of this.#trained) {
        sums.replace(layerParameter(layer, name), fetched[`gradient.${name}`]!, scope)
      }
      for (const tensor of [current, x, ...Object.values(kept ?? {})]) scope.free(tensor)
      current = fetched.dx!
    }
    return current
  }

  /** Frees what it holds itself. */
  free(): void {
    for (const tensor of Object.values(this.#positions?.feeds ?? {})) this.#device.free(tensor)
    this.#positions = undefined
  }

  #keptBytes([rows, length]: readonly number[]): number {
    const lengths = { B: rows!, T: length! }
    const sizes = [...this.#graphs.kept.values()].map(shape =>
      resolveShape(shape, lengths).reduce((product, dim) => product * dim, 4),
    )
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  async #feeds(weights: ResidentWeights, layer: number, x: Tensor, training = false): Promise<Feeds> {
    const names = training && this.#adapted ? [...this.#parameters, ...this.#trained] : this.#parameters
    const own = names.map(name => [name, weights.get(layerParameter(layer, name))!.whole])
    const { cos, sin, full, window } = await this.#positionsOf(x.dims[1]!)
    const mask = windowOf(this.#config, layer) === undefined ? full! : window!
    return { x, cos: cos!, sin: sin!, mask, ...Object.fromEntries(own) }
  }

  async #positionsOf(length: number): Promise<Readonly<Record<string, Tensor>>> {
    if (this.#positions?.length === length) return this.#positions.feeds
    this.free()
    const { slidingWindow } = this.#config
    const feeds = await uploadAll(this.#device, {
      ...firstPositions(this.#tables, length),
      full: maskOf(length, length),
      ...(slidingWindow && { window: maskOf(length, slidingWindow.tokens) }),
    })
    this.#positions = { length, feeds }
    return feeds
  }
}

/** [T, T]: each row looks at itself and at `window − 1` tokens before it. */
function maskOf(length: number, window: number): Tensor {
  const mask = new Float32Array(length * length).fill(MASKED)
  for (let row = 0; row < length; row++) {
    mask.fill(0, row * length + Math.max(0, row - window + 1), row * length + row + 1)
  }
  return new Tensor('float32', mask, [length, length])
}

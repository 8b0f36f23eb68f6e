/**
 * Runs a batch of rows through the decoder layers, forward and backward. All layers of a reach share the same
 * sessions, but for the last, which computes the tail of the rows that is asked for (positions.ts).
 *
 * Between the passes each layer's input is kept, and as many layers' activations as fit into a budget; the
 * backward pass of the others computes them again. The result is the same to the bit, memory and time differ.
 */
import type { Tensor } from 'onnxruntime-node'
import { type ModelConfig, windowOf } from '../architectures/config.ts'
import { layerParameters } from '../architectures/layer-parameters.ts'
import type { Dim } from '../graph/value.ts'
import type { LoraOptions } from '../port.ts'
import { type Feeds, Session, type SessionOptions } from '../runtime/session.ts'
import { layerParameter } from '../weights/parameter-shapes.ts'
import type { Weights } from '../weights/weights.ts'
import { Buffers, resolveShape } from './buffers.ts'
import type { GradientSums } from './gradient-sums.ts'
import { layerGraphs, trainedShapes } from './layer-graphs.ts'
import { type Extent, positionFeeds, positionLengths, type Reach } from './positions.ts'

/** What is kept of a layer between forward and backward pass. */
export interface LayerTrace {
  readonly x: Tensor
  /** Absent where the budget was used up. */
  readonly kept?: Feeds
}

interface Sessions {
  readonly forward: Session
  readonly training: Session
  readonly backward: Session
  readonly recomputing: Session
  readonly adding: Session
  /** Shapes of what is kept. */
  readonly kept: ReadonlyMap<string, readonly Dim[]>
}

export class Layers {
  readonly #config: ModelConfig
  readonly #budget: number
  /** Of the layers before the last, and of the last. */
  readonly #sessions: ReadonlyMap<Reach, Sessions>
  readonly #tail: Sessions
  readonly #parameters: readonly string[]
  /** Names behind `model.layers.N.`: the parameters, or the factors of an adapter. */
  readonly #trained: readonly string[]
  readonly #adapted: boolean
  readonly #buffers = new Buffers()
  readonly #positions: (length: number) => Feeds
  readonly #tailPositions: (length: number, from: number) => Feeds

  private constructor(
    config: ModelConfig,
    lora: LoraOptions | undefined,
    budget: number,
    sessions: ReadonlyMap<Reach, Sessions>,
    tail: Sessions,
  ) {
    this.#config = config
    this.#budget = budget
    this.#sessions = sessions
    this.#tail = tail
    this.#parameters = [...layerParameters(config).keys()]
    this.#trained = [...trainedShapes(config, lora).keys()]
    this.#adapted = lora !== undefined
    this.#positions = positionFeeds(config)
    this.#tailPositions = positionFeeds(config)
  }

  /**
   * @param activationBytes most that is kept of activations between the forward and the backward pass
   * @param lora trains an adapter, whose factors are then among the weights given to `trace` and `backward`
   */
  static async create(
    config: ModelConfig,
    activationBytes: number,
    options: SessionOptions,
    lora?: LoraOptions,
  ): Promise<Layers> {
    const sessionsOf = async (reach: Reach, extent: Extent): Promise<Sessions> => {
      const graphs = layerGraphs(config, reach, lora, extent)
      return {
        forward: await Session.create('layer forward', graphs.forward, options),
        training: await Session.create('layer forward for training', graphs.training, options),
        backward: await Session.create('layer backward', graphs.backward, options),
        recomputing: await Session.create('layer recomputing backward', graphs.recomputing, options),
        adding: await Session.create('gradient sums', graphs.adding, options),
        kept: graphs.kept,
      }
    }
    const last = config.layers - 1
    const sessions = new Map<Reach, Sessions>()
    for (let layer = 0; layer < last; layer++) {
      const reach = reachOf(config, layer)
      if (!sessions.has(reach)) sessions.set(reach, await sessionsOf(reach, 'all'))
    }
    const tail = await sessionsOf(reachOf(config, last), 'tail')
    return new Layers(config, lora, activationBytes, sessions, tail)
  }

  /**
   * @param x [B, T, D], after the embedding
   * @param from where the rows begin that are wanted, at least `LEAST_LENGTH` before T
   * @returns the last layer's output from there on, [B, R, D], valid until the next call
   */
  async forward(weights: Weights, x: Tensor, from: number): Promise<Tensor> {
    let current = x
    for (let layer = 0; layer < this.#config.layers; layer++) {
      const y = this.#buffers.tensor(`forward.${layer % 2}`, this.#outputDims(layer, x.dims, from))
      await this.#of(layer).forward.run(this.#feeds(weights, layer, current, from), { y })
      current = y
    }
    return current
  }

  /** As `forward`, with what `backward` needs of each layer: valid until the next call of `trace`. */
  async trace(weights: Weights, x: Tensor, from: number): Promise<{ y: Tensor; traces: LayerTrace[] }> {
    const traces: LayerTrace[] = []
    let current = x
    let spent = 0
    for (let layer = 0; layer < this.#config.layers; layer++) {
      const sessions = this.#of(layer)
      const shapes = this.#keptDims(layer, x.dims, from)
      const bytes = [...shapes.values()].reduce((sum, dims) => sum + 4 * dims.reduce((a, b) => a * b, 1), 0)
      const y = this.#buffers.tensor(`trace.${layer}`, this.#outputDims(layer, x.dims, from))
      const keep = spent + bytes <= this.#budget
      const kept = keep ? this.#keptOf(layer, shapes) : {}
      const session = keep ? sessions.training : sessions.forward
      const feeds = this.#feeds(weights, layer, current, from, keep)
      await session.run(feeds, { y, ...kept })
      if (keep) spent += bytes
      traces.push(keep ? { x: current, kept } : { x: current })
      current = y
    }
    return { y: current, traces }
  }

  /**
   * @param traces of each layer
   * @param dy gradient at the last layer's output, [B, R, D]
   * @param sums where the gradients of the layers' weights are added
   * @returns the gradient at the first layer's input, valid until the next call
   */
  async backward(
    weights: Weights,
    traces: readonly LayerTrace[],
    dy: Tensor,
    sums: GradientSums,
  ): Promise<Tensor> {
    let current = dy
    const from = traces[0]!.x.dims[1]! - dy.dims[1]!
    for (const [layer, { x, kept }] of [...traces.entries()].reverse()) {
      const dx = this.#buffers.tensor(`backward.${layer % 2}`, x.dims)
      const feeds: Feeds = { ...this.#feeds(weights, layer, x, from, true), dy: current, ...kept }
      const { backward, recomputing, adding } = this.#of(layer)
      const { gradients, add } = this.#gradients(layer, sums)
      await (kept ? backward : recomputing).run(feeds, { dx, ...gradients })
      if (add) await adding.run({ ...gradients, ...add.sums }, add.totals)
      current = dx
    }
    return current
  }

  /** Where a layer's gradients go: into sums that are empty, or beside the sums, to be added then. */
  #gradients(
    layer: number,
    sums: GradientSums,
  ): { gradients: Feeds; add?: { readonly sums: Feeds; readonly totals: Feeds } } {
    const names = this.#trained.map(name => [name, layerParameter(layer, name)] as const)
    const tensors = (prefix: string, tensorOf: (parameter: string, name: string) => Tensor) =>
      Object.fromEntries(names.map(([name, full]) => [`${prefix}.${name}`, tensorOf(full, name)]))
    if (names.every(([, full]) => sums.isEmpty(full)))
      return { gradients: tensors('gradient', full => sums.begin(full)) }
    const beside = (full: string, name: string) =>
      this.#buffers.tensor(`gradient.${name}`, sums.of(full).dims)
    // Each sum is read by the one node that writes it, so it can be both input and output.
    const [added, totals] = [tensors('sum', full => sums.of(full)), tensors('total', full => sums.of(full))]
    return { gradients: tensors('gradient', beside), add: { sums: added, totals } }
  }

  async release(): Promise<void> {
    for (const sessions of [...this.#sessions.values(), this.#tail]) {
      const { forward, training, backward, recomputing, adding } = sessions
      for (const session of [forward, training, backward, recomputing, adding]) await session.release()
    }
  }

  #isLast(layer: number): boolean {
    return layer === this.#config.layers - 1
  }

  #of(layer: number): Sessions {
    return this.#isLast(layer) ? this.#tail : this.#sessions.get(reachOf(this.#config, layer))!
  }

  #outputDims(layer: number, [rows, length, width]: readonly number[], from: number): readonly number[] {
    return [rows!, this.#isLast(layer) ? length! - from : length!, width!]
  }

  #keptDims(
    layer: number,
    [rows, length]: readonly number[],
    from: number,
  ): ReadonlyMap<string, readonly number[]> {
    const lengths = {
      B: rows!,
      ...positionLengths(this.#config, length!, this.#isLast(layer) ? from : 0),
    }
    return new Map([...this.#of(layer).kept].map(([name, shape]) => [name, resolveShape(shape, lengths)]))
  }

  #keptOf(layer: number, shapes: ReadonlyMap<string, readonly number[]>): Feeds {
    const tensors = [...shapes].map(([name, dims]) => [
      name,
      this.#buffers.tensor(`${name} of ${layer}`, dims),
    ])
    return Object.fromEntries(tensors)
  }

  #feeds(weights: Weights, layer: number, x: Tensor, from: number, training = false): Feeds {
    const names = training && this.#adapted ? [...this.#parameters, ...this.#trained] : this.#parameters
    const own = names.map(name => [name, weights.get(layerParameter(layer, name))!])
    const length = x.dims[1]!
    const positions = this.#isLast(layer) ? this.#tailPositions(length, from) : this.#positions(length)
    return { x, ...positions, ...Object.fromEntries(own) }
  }
}

function reachOf(config: ModelConfig, layer: number): Reach {
  return windowOf(config, layer) === undefined ? 'full' : 'window'
}

/**
 * Runs a batch of rows through the decoder layers, forward and backward. All layers of a reach share the same
 * sessions.
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
import { positionFeeds, positionLengths, type Reach, reachesOf } from './positions.ts'

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
  readonly #sessions: ReadonlyMap<Reach, Sessions>
  readonly #parameters: readonly string[]
  /** Names behind `model.layers.N.`: the parameters, or the factors of an adapter. */
  readonly #trained: readonly string[]
  readonly #adapted: boolean
  readonly #buffers = new Buffers()
  readonly #positions: (length: number) => Feeds

  private constructor(
    config: ModelConfig,
    lora: LoraOptions | undefined,
    budget: number,
    sessions: ReadonlyMap<Reach, Sessions>,
  ) {
    this.#config = config
    this.#budget = budget
    this.#sessions = sessions
    this.#parameters = [...layerParameters(config).keys()]
    this.#trained = [...trainedShapes(config, lora).keys()]
    this.#adapted = lora !== undefined
    this.#positions = positionFeeds(config)
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
    const sessions = new Map<Reach, Sessions>()
    for (const reach of reachesOf(config)) {
      const graphs = layerGraphs(config, reach, lora)
      sessions.set(reach, {
        forward: await Session.create('layer forward', graphs.forward, options),
        training: await Session.create('layer forward for training', graphs.training, options),
        backward: await Session.create('layer backward', graphs.backward, options),
        recomputing: await Session.create('layer recomputing backward', graphs.recomputing, options),
        adding: await Session.create('gradient sums', graphs.adding, options),
        kept: graphs.kept,
      })
    }
    return new Layers(config, lora, activationBytes, sessions)
  }

  /**
   * @param x [B, T, D], after the embedding
   * @returns the last layer's output, [B, T, D], valid until the next call
   */
  async forward(weights: Weights, x: Tensor): Promise<Tensor> {
    let current = x
    for (let layer = 0; layer < this.#config.layers; layer++) {
      const y = this.#buffers.tensor(`forward.${layer % 2}`, x.dims)
      await this.#of(layer).forward.run(this.#feeds(weights, layer, current), { y })
      current = y
    }
    return current
  }

  /** As `forward`, with what `backward` needs of each layer: valid until the next call of `trace`. */
  async trace(weights: Weights, x: Tensor): Promise<{ y: Tensor; traces: LayerTrace[] }> {
    const traces: LayerTrace[] = []
    let current = x
    let spent = 0
    for (let layer = 0; layer < this.#config.layers; layer++) {
      const sessions = this.#of(layer)
      const shapes = this.#keptDims(sessions, x.dims)
      const bytes = [...shapes.values()].reduce((sum, dims) => sum + 4 * dims.reduce((a, b) => a * b, 1), 0)
      const y = this.#buffers.tensor(`trace.${layer}`, x.dims)
      const keep = spent + bytes <= this.#budget
      const kept = keep ? this.#keptOf(layer, shapes) : {}
      const session = keep ? sessions.training : sessions.forward
      const feeds = this.#feeds(weights, layer, current, keep)
      await session.run(feeds, { y, ...kept })
      if (keep) spent += bytes
      traces.push(keep ? { x: current, kept } : { x: current })
      current = y
    }
    return { y: current, traces }
  }

  /**
   * @param traces of each layer
   * @param dy gradient at the last layer's output, [B, T, D]
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
    for (const [layer, { x, kept }] of [...traces.entries()].reverse()) {
      const dx = this.#buffers.tensor(`backward.${layer % 2}`, dy.dims)
      const feeds: Record<string, Tensor> = {
        ...this.#feeds(weights, layer, x, true),
        dy: current,
        ...kept,
      }
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
    for (const { forward, training, backward, recomputing, adding } of this.#sessions.values()) {
      for (const session of [forward, training, backward, recomputing, adding]) await session.release()
    }
  }

  #of(layer: number): Sessions {
    return this.#sessions.get(windowOf(this.#config, layer) === undefined ? 'full' : 'window')!
  }

  #keptDims({ kept }: Sessions, [rows, length]: readonly number[]): ReadonlyMap<string, readonly number[]> {
    const lengths = { B: rows!, ...positionLengths(this.#config, length!) }
    return new Map([...kept].map(([name, shape]) => [name, resolveShape(shape, lengths)]))
  }

  #keptOf(layer: number, shapes: ReadonlyMap<string, readonly number[]>): Feeds {
    const tensors = [...shapes].map(([name, dims]) => [
      name,
      this.#buffers.tensor(`${name} of ${layer}`, dims),
    ])
    return Object.fromEntries(tensors)
  }

  #feeds(weights: Weights, layer: number, x: Tensor, training = false): Feeds {
    const names = training && this.#adapted ? [...this.#parameters, ...this.#trained] : this.#parameters
    const own = names.map(name => [name, weights.get(layerParameter(layer, name))!])
    return { x, ...this.#positions(x.dims[1]!), ...Object.fromEntries(own) }
  }
}

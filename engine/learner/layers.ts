/**
 * Runs a batch of rows through the decoder layers, forward and backward. All layers share the same sessions.
 *
 * Between the passes each layer's input is kept, and as many layers' activations as fit into a budget; the
 * backward pass of the others computes them again. The result is the same to the bit, memory and time differ.
 */
import type { Tensor } from 'onnxruntime-node'
import { architectureOf } from '../architectures/architecture.ts'
import type { ModelConfig } from '../architectures/config.ts'
import type { Dim } from '../graph/value.ts'
import { type Feeds, Session, type SessionOptions } from '../runtime/session.ts'
import { layerParameter } from '../weights/parameter-shapes.ts'
import type { Weights } from '../weights/weights.ts'
import { Buffers, resolveShape } from './buffers.ts'
import type { GradientSums } from './gradient-sums.ts'
import { layerGraphs } from './layer-graphs.ts'
import { positionFeeds, positionLengths } from './positions.ts'

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
}

export class Layers {
  readonly #config: ModelConfig
  readonly #budget: number
  readonly #sessions: Sessions
  readonly #keptShapes: ReadonlyMap<string, readonly Dim[]>
  readonly #parameters: readonly string[]
  readonly #buffers = new Buffers()
  readonly #positions: (length: number) => Feeds

  private constructor(
    config: ModelConfig,
    budget: number,
    sessions: Sessions,
    keptShapes: ReadonlyMap<string, readonly Dim[]>,
  ) {
    this.#config = config
    this.#budget = budget
    this.#sessions = sessions
    this.#keptShapes = keptShapes
    this.#parameters = [...architectureOf(config).layerParameters(config).keys()]
    this.#positions = positionFeeds(config)
  }

  /**
   * @param activationBytes most that is kept of activations between the forward and the backward pass
   */
  static async create(
    config: ModelConfig,
    activationBytes: number,
    options: SessionOptions,
  ): Promise<Layers> {
    const graphs = layerGraphs(config)
    const sessions = {
      forward: await Session.create('layer forward', graphs.forward, options),
      training: await Session.create('layer forward for training', graphs.training, options),
      backward: await Session.create('layer backward', graphs.backward, options),
      recomputing: await Session.create('layer recomputing backward', graphs.recomputing, options),
    }
    return new Layers(config, activationBytes, sessions, graphs.kept)
  }

  /**
   * @param x [B, T, D], after the embedding
   * @returns the last layer's output, [B, T, D], valid until the next call
   */
  async forward(weights: Weights, x: Tensor): Promise<Tensor> {
    let current = x
    for (let layer = 0; layer < this.#config.layers; layer++) {
      const y = this.#buffers.tensor(`forward.${layer % 2}`, x.dims)
      await this.#sessions.forward.run(this.#feeds(weights, layer, current), { y })
      current = y
    }
    return current
  }

  /** As `forward`, with what `backward` needs of each layer: valid until the next call of `trace`. */
  async trace(weights: Weights, x: Tensor): Promise<{ y: Tensor; traces: LayerTrace[] }> {
    const traces: LayerTrace[] = []
    const shapes = this.#keptDims(x.dims)
    const bytes = [...shapes.values()].reduce((sum, dims) => sum + 4 * dims.reduce((a, b) => a * b, 1), 0)
    let current = x
    let spent = 0
    for (let layer = 0; layer < this.#config.layers; layer++) {
      const y = this.#buffers.tensor(`trace.${layer}`, x.dims)
      const keep = spent + bytes <= this.#budget
      const kept = keep ? this.#keptOf(layer, shapes) : {}
      const session = keep ? this.#sessions.training : this.#sessions.forward
      await session.run(this.#feeds(weights, layer, current), { y, ...kept })
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
      const feeds: Record<string, Tensor> = { ...this.#feeds(weights, layer, x), dy: current, ...kept }
      const fetches: Record<string, Tensor> = { dx }
      for (const name of this.#parameters) {
        const sum = sums.of(layerParameter(layer, name))
        feeds[`sum.${name}`] = sum
        // Each sum is read by the one node that writes it, so it can be both input and output.
        fetches[`gradient.${name}`] = sum
      }
      await (kept ? this.#sessions.backward : this.#sessions.recomputing).run(feeds, fetches)
      current = dx
    }
    return current
  }

  async release(): Promise<void> {
    for (const session of Object.values(this.#sessions)) await session.release()
  }

  #keptDims([rows, length]: readonly number[]): ReadonlyMap<string, readonly number[]> {
    const lengths = { B: rows!, ...positionLengths(length!) }
    return new Map([...this.#keptShapes].map(([name, shape]) => [name, resolveShape(shape, lengths)]))
  }

  #keptOf(layer: number, shapes: ReadonlyMap<string, readonly number[]>): Feeds {
    const tensors = [...shapes].map(([name, dims]) => [
      name,
      this.#buffers.tensor(`${name} of ${layer}`, dims),
    ])
    return Object.fromEntries(tensors)
  }

  #feeds(weights: Weights, layer: number, x: Tensor): Feeds {
    const own = this.#parameters.map(name => [name, weights.get(layerParameter(layer, name))!])
    return { x, ...this.#positions(x.dims[1]!), ...Object.fromEntries(own) }
  }
}

/** Runs a batch of rows through the decoder layers, forward and backward. All layers share two sessions. */
import { Tensor } from 'onnxruntime-node'
import { architectureOf } from '../architectures/architecture.ts'
import type { ModelConfig } from '../architectures/config.ts'
import { type RotaryTables, rotaryTables } from '../architectures/rotary-tables.ts'
import { type Feeds, Session, type SessionOptions } from '../runtime/session.ts'
import type { Weights } from '../weights/weights.ts'
import type { GradientSums } from './gradient-sums.ts'
import { backwardGraph, forwardGraph } from './layer-graphs.ts'

/** Low enough that the exponential of any score with it is 0. */
const MASKED = -1e30

export class Layers {
  readonly #config: ModelConfig
  readonly #forward: Session
  readonly #backward: Session
  readonly #tables: RotaryTables
  readonly #parameters: readonly string[]
  #positions: Feeds = {}
  #length = 0

  private constructor(config: ModelConfig, forward: Session, backward: Session) {
    this.#config = config
    this.#forward = forward
    this.#backward = backward
    this.#tables = rotaryTables(config)
    this.#parameters = [...architectureOf(config).layerParameters(config).keys()]
  }

  static async create(config: ModelConfig, options: SessionOptions): Promise<Layers> {
    const forward = await Session.create('layer forward', forwardGraph(config), options)
    return new Layers(config, forward, await Session.create('layer backward', backwardGraph(config), options))
  }

  /**
   * @param x [B, T, D], after the embedding
   * @returns the input of each layer and, last, the output of the last one; all but the last are left out
   * unless `keepInputs` asks for them
   */
  async forward(weights: Weights, x: Tensor, keepInputs: boolean): Promise<Tensor[]> {
    const kept: Tensor[] = []
    let current = x
    for (let layer = 0; layer < this.#config.layers; layer++) {
      if (keepInputs) kept.push(current)
      const feeds = { x: current, ...this.#positionsOf(x.dims[1]!), ...this.#weightsOf(weights, layer) }
      current = (await this.#forward.run(feeds)).y!
    }
    return [...kept, current]
  }

  /**
   * @param inputs of each layer, as `forward` kept them
   * @param dy gradient at the last layer's output, [B, T, D]
   * @param sums where the gradients of the layers' weights are added
   * @returns the gradient at the first layer's input
   */
  async backward(
    weights: Weights,
    inputs: readonly Tensor[],
    dy: Tensor,
    sums: GradientSums,
  ): Promise<Tensor> {
    let current = dy
    for (let layer = this.#config.layers - 1; layer >= 0; layer--) {
      const feeds: Record<string, Tensor> = {
        x: inputs[layer]!,
        dy: current,
        ...this.#positionsOf(dy.dims[1]!),
        ...this.#weightsOf(weights, layer),
      }
      const fetches: Record<string, Tensor | null> = { dx: null }
      for (const name of this.#parameters) {
        const sum = sums.of(fullName(layer, name))
        feeds[`sum.${name}`] = sum
        // Each sum is read by the one node that writes it, so it can be both input and output.
        fetches[`gradient.${name}`] = sum
      }
      current = (await this.#backward.run(feeds, fetches)).dx!
    }
    return current
  }

  async release(): Promise<void> {
    await this.#forward.release()
    await this.#backward.release()
  }

  #weightsOf(weights: Weights, layer: number): Feeds {
    return Object.fromEntries(this.#parameters.map(name => [name, weights.get(fullName(layer, name))!]))
  }

  #positionsOf(length: number): Feeds {
    if (length !== this.#length) {
      const half = this.#config.headDim / 2
      const rows = ({ data }: Tensor) =>
        new Tensor('float32', (data as Float32Array).subarray(0, length * half), [length, half])
      const mask = new Float32Array(length * length)
      for (let query = 0; query < length; query++)
        mask.fill(MASKED, query * length + query + 1, (query + 1) * length)
      this.#positions = {
        cos: rows(this.#tables.cos),
        sin: rows(this.#tables.sin),
        mask: new Tensor('float32', mask, [length, length]),
      }
      this.#length = length
    }
    return this.#positions
  }
}

function fullName(layer: number, name: string): string {
  return `model.layers.${layer}.${name}`
}

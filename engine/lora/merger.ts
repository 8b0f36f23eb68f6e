/** W₀ + s · B · A: the weights that an adapter stands for. Everything but training sees these alone. */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import type { LoraOptions } from '../port.ts'
import { Session, type SessionOptions } from '../runtime/session.ts'
import type { Weights } from '../weights/weights.ts'
import { adaptedParameters, factorNames } from './adapter.ts'
import { mergeGraph } from './merge-graph.ts'

export class Merger {
  readonly #session: Session
  readonly #adapted: ReadonlySet<string>

  private constructor(session: Session, adapted: ReadonlySet<string>) {
    this.#session = session
    this.#adapted = adapted
  }

  static async create(config: ModelConfig, lora: LoraOptions, options: SessionOptions): Promise<Merger> {
    const session = await Session.create('merge', mergeGraph(lora), options)
    return new Merger(session, adaptedParameters(config, lora))
  }

  /**
   * Always from the frozen weights, so that no rounding adds up over updates.
   * @param made told each weight, changed or not, in the order of their names, before the next is computed
   * @param into where a merged weight goes; a fresh array where undefined
   * @returns new tensors for what is adapted, those of `base` for the rest
   */
  async merge(
    base: Weights,
    adapter: Weights,
    made: (name: string, weight: Tensor) => void = () => {},
    into: (name: string) => Float32Array | undefined = () => undefined,
  ): Promise<Weights> {
    const merged = new Map(base)
    for (const name of [...base.keys()].sort()) {
      let weight = base.get(name)!
      if (this.#adapted.has(name)) {
        const { a, b } = factorNames(name)
        const y = new Tensor('float32', into(name) ?? new Float32Array(weight.size), weight.dims)
        await this.#session.run({ w: weight, a: adapter.get(a)!, b: adapter.get(b)! }, { y })
        weight = y
        merged.set(name, weight)
      }
      made(name, weight)
    }
    return merged
  }

  async release(): Promise<void> {
    await this.#session.release()
  }
}

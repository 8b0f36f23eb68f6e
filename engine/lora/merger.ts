/** W₀ + s · B · A: the weights that an adapter stands for. Everything but training sees these alone. */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import { float } from '../onnx/attribute.ts'
import { GraphBuilder } from '../onnx/graph-builder.ts'
import type { LoraOptions } from '../port.ts'
import { Session, type SessionOptions } from '../runtime/session.ts'
import { layerParameter } from '../weights/parameter-shapes.ts'
import type { Weights } from '../weights/weights.ts'
import { adaptedMatrices, factorNames, loraScale } from './adapter.ts'

export class Merger {
  readonly #session: Session
  readonly #adapted: ReadonlySet<string>

  private constructor(session: Session, adapted: ReadonlySet<string>) {
    this.#session = session
    this.#adapted = adapted
  }

  static async create(config: ModelConfig, lora: LoraOptions, options: SessionOptions): Promise<Merger> {
    const names = [...adaptedMatrices(config, lora).keys()]
    const layers = Array.from({ length: config.layers }, (_, layer) => layer)
    const adapted = new Set(layers.flatMap(layer => names.map(name => layerParameter(layer, name))))
    return new Merger(await Session.create('merge', mergeGraph(lora), options), adapted)
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

/** `w` [O, I], `a` [r, I], `b` [O, r] to `y` [O, I]. */
function mergeGraph(lora: LoraOptions): Uint8Array {
  const builder = new GraphBuilder('merge')
  const w = builder.input('w', 'float32', ['O', 'I'])
  const a = builder.input('a', 'float32', [lora.rank, 'I'])
  const b = builder.input('b', 'float32', ['O', lora.rank])
  const y = builder.node('Gemm', [b, a, w], { alpha: float(loraScale(lora)) })
  builder.output(y, 'float32', ['O', 'I'], 'y')
  return builder.build()
}

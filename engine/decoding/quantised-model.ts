/**
 * A copy of the model with matrices of 8 bits, which foretells most of what the model itself will say in a quarter of
 * the time: decoding few sequences takes as long as reading the weights does. It reads the keys and values that the
 * model itself has cached.
 */
import type { ModelConfig } from '../architectures/config.ts'
import type { Weights } from '../weights/weights.ts'
import { matricesOf } from './decode-graph.ts'
import { ForwardPasses, type PassesOptions } from './forward-passes.ts'
import { blockStart } from './key-value-cache.ts'
import { LOGITS } from './names.ts'
import { type QuantisedWeight, quantise } from './quantised-weight.ts'

export class QuantisedModel {
  readonly #passes: ForwardPasses

  private constructor(passes: ForwardPasses) {
    this.#passes = passes
  }

  /** @param cache of the model itself. */
  static async create(
    config: ModelConfig,
    weights: Weights,
    options: Omit<PassesOptions, 'quantised'>,
  ): Promise<QuantisedModel> {
    const quantised = new Map<string, QuantisedWeight>()
    for (const [name, dims] of matricesOf(config)) {
      quantised.set(name, quantise(weights.get(name)!.data as Float32Array, dims))
    }
    const passes = await ForwardPasses.create(config, weights, { ...options, quantised })
    passes.use(weights)
    return new QuantisedModel(passes)
  }

  /**
   * Tokens that may follow each of the sequences, which are those of the cache's first rows in order. All their tokens
   * but the last are cached; places of the cache after them are overwritten.
   * @param draw what a sequence continues with, by its number, how many tokens were drafted before, and logits [V].
   */
  async draft(
    sequences: readonly (readonly number[])[],
    length: number,
    draw: (sequence: number, before: number, logits: Float32Array) => number,
  ): Promise<readonly (readonly number[])[]> {
    const drafts: number[][] = sequences.map(() => [])
    for (let before = 0; before < length; before++) {
      const parts = sequences.map((sequence, n) => ({
        tokens: [drafts[n]!.at(-1) ?? sequence.at(-1)!],
        first: sequence.length - 1 + before,
        block: blockStart(sequence.length - 1),
      }))
      const fetched = await this.#passes.step(parts)
      const logits = fetched[LOGITS]!.data as Float32Array
      const size = logits.length / sequences.length
      drafts.forEach((draft, n) => {
        draft.push(draw(n, before, logits.subarray(n * size, (n + 1) * size)))
      })
      this.#passes.cache.place(
        fetched,
        parts.map(({ first, block }) => first - block),
      )
    }
    return drafts
  }

  release(): Promise<void> {
    return this.#passes.release()
  }
}

/** Values of 8 bits that a copy has. Making it takes three times as many bytes for a moment. */
export function quantisedValues(config: ModelConfig): number {
  return [...matricesOf(config).values()].reduce((sum, [out, inputs]) => sum + out * inputs, 0)
}

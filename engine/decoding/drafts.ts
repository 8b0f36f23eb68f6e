/**
 * What a step reads beside the newest token of each sequence: as many tokens as promise to pay, from the text itself, or
 * from a copy of the model in 8 bits where few sequences are decoded. The copy is made once as much time could have been saved
 * by it as making it takes. All that decides over nothing but the time.
 */
import type { ModelConfig } from '../architectures/config.ts'
import type { SamplingOptions } from '../port.ts'
import type { Sampler } from '../sampling/sampler.ts'
import type { Weights } from '../weights/weights.ts'
import { planDrafts } from './draft-length.ts'
import { HitRate } from './hit-rate.ts'
import type { KeyValueCache } from './key-value-cache.ts'
import type { Lookup } from './prompt-lookup.ts'
import { QuantisedModel, quantisedValues } from './quantised-model.ts'

/** Guesses at most `most` tokens that may follow a sequence, its prompt and response so far. */
export type TextDraft = (sequence: readonly number[], most: number) => Lookup

/** A sequence that is being decoded. */
export interface Decoded {
  /** The prompt, then the response so far. */
  readonly sequence: readonly number[]
  /** Most tokens of a draft that can be of use. */
  readonly room: number
  /** The number that decides over a token of the response; 0 for the next. */
  readonly uniform: (ahead: number) => number
}

/** How probable a token from the text is by the number of tokens that matched: of greedy English answers. */
const TEXT_CHANCES = [0, 0, 0.3, 0.4, 0.6, 0.8, 0.9, 0.9, 0.95]
const GREEDY_CHANCE = 0.85
/** Of sampled ones, drawn from the copy's logits by the same number. */
const SAMPLED_CHANCE = 0.7
/** What a token of each sequence costs, on the scale of a step of one token: a pass through the copy. */
const passCost = (sequences: number) => 0.25 + 0.05 * sequences
/** More sequences leave no room in a step for what the copy costs. */
const MOST_SEQUENCES = 4
/** What it costs to make a copy, on the scale of a step of one token. */
const COPY_COST = 32
/** Larger copies would be too dear in memory while they are made. */
export const MOST_VALUES = 2 ** 29

export interface DraftsOptions {
  readonly threads: number
  readonly cache: KeyValueCache
  readonly sampler: Sampler
  readonly text: TextDraft
  /** Whether a copy of the model may be made. */
  readonly model: boolean
}

export class Drafts {
  readonly #config: ModelConfig
  readonly #options: DraftsOptions
  readonly #mayCopy: boolean
  readonly #textRates = TEXT_CHANCES.map(chance => new HitRate(chance))
  #greedyRate = new HitRate(GREEDY_CHANCE)
  #sampledRate = new HitRate(SAMPLED_CHANCE)
  /** Whom the last proposals are to be put down to, by sequence. */
  #sources: readonly HitRate[] = []
  /** Whose copy the model is. They are not to be held longer than others hold them. */
  #weights: WeakRef<Weights> | undefined
  #model: QuantisedModel | undefined
  /** What a copy would have saved, on the scale of a step of one token. */
  #missed = 0

  constructor(config: ModelConfig, options: DraftsOptions) {
    this.#config = config
    this.#options = options
    this.#mayCopy = options.model && quantisedValues(config) <= MOST_VALUES
  }

  /** Sequences are decoded with these weights from now on. */
  async use(weights: Weights): Promise<void> {
    if (weights === this.#weights?.deref()) return
    await this.release()
    this.#weights = new WeakRef(weights)
    this.#missed = 0
    this.#greedyRate = new HitRate(GREEDY_CHANCE)
    this.#sampledRate = new HitRate(SAMPLED_CHANCE)
  }

  /** Lets go of the copy of the model. */
  async release(): Promise<void> {
    await this.#model?.release()
    this.#model = undefined
    this.#weights = undefined
  }

  /** Equally many tokens for each of the cache's first rows. What has no guess gets token 0. */
  async propose(
    rows: readonly Decoded[],
    sampling: SamplingOptions,
  ): Promise<readonly (readonly number[])[]> {
    const { keyValueHeads } = this.#config
    // With fewer heads of keys than threads, how a product is shared out depends on how many tokens a row has.
    if (keyValueHeads < this.#options.threads) return rows.map(() => [])
    const found = rows.map(({ sequence, room }) => this.#options.text(sequence, room))
    const text = planDrafts(
      found.map(({ tokens, matched }) => ({
        length: tokens.length,
        chance: this.#textRates[matched]!.value,
      })),
    )
    const modelRate = sampling.temperature === 0 ? this.#greedyRate : this.#sampledRate
    const chance = modelRate.value
    const model =
      !this.#mayCopy || rows.length > MOST_SEQUENCES
        ? { length: 0, rate: 0 }
        : planDrafts(
            rows.map(({ room }) => ({ length: room, chance })),
            passCost(rows.length),
          )
    if (model.rate > text.rate && (await this.#made(1 - text.rate / model.rate))) {
      this.#sources = rows.map(() => modelRate)
      return this.#model!.draft(
        rows.map(({ sequence }) => sequence),
        model.length,
        (row, before, logits) =>
          this.#options.sampler.draw(logits, sampling, rows[row]!.uniform(before)).token,
      )
    }
    this.#sources = found.map(({ matched }) => this.#textRates[matched]!)
    return found.map(({ tokens }) => Array.from({ length: text.length }, (_, i) => tokens[i] ?? 0))
  }

  /** Told of the last proposals how many tokens were looked at, and how many of them were right. */
  learn(looked: readonly number[], right: readonly number[]): void {
    this.#sources.forEach((source, i) => {
      source.learn(looked[i]!, right[i]!)
    })
  }

  /** Whether there is a copy of the model. `saving`: what it saves of a step. */
  async #made(saving: number): Promise<boolean> {
    if (this.#model) return true
    this.#missed += saving
    if (this.#missed < COPY_COST) return false
    this.#model = await QuantisedModel.create(this.#config, this.#weights!.deref()!, this.#options)
    return true
  }
}

/** Draws a token from logits. All arithmetic is in f64. */
import { GraspError } from '../../errors/grasp-error.ts'
import type { SamplingOptions } from '../port.ts'
import { Exponentials } from './exponentials.ts'

export type SamplerOptions = Pick<SamplingOptions, 'temperature' | 'topK' | 'topP' | 'minP'>

export interface Draw {
  /** At temperature 0 the greatest logit, the lowest id among equals. */
  readonly token: number
  /** log-probability at temperature 1 over the whole vocabulary, nats. */
  readonly logp: number
}

/** Scratch space for one vocabulary size; holds no state between draws. */
export class Sampler {
  readonly #exponentials: Exponentials
  readonly #weights: Float64Array

  constructor(vocabularySize: number) {
    this.#exponentials = new Exponentials(vocabularySize)
    this.#weights = this.#exponentials.weights
  }

  /**
   * @param logits [V], finite or -Infinity. @param uniform in [0, 1).
   * @throws GraspError ENGINE_FAILED when no logit is finite or one is NaN.
   */
  draw(logits: Float32Array, options: SamplerOptions, uniform: number): Draw {
    const best = argmax(logits)
    const greatest = logits[best]!
    let sum = this.#exponentials.of(logits, greatest, 1)
    if (Number.isNaN(sum))
      throw diverged(`the logit of token ${logits.findIndex(Number.isNaN)} is not a number`)
    const logSumExp = greatest + Math.log(sum)
    let token = best
    if (options.temperature > 0) {
      // Infinite below 5.6e-309: times the greatest's 0 it would be no number.
      const rate = Math.min(1 / options.temperature, Number.MAX_VALUE)
      if (rate !== 1) sum = this.#exponentials.of(logits, greatest, rate)
      const truncated = options.topK > 0 || options.topP < 1 || options.minP > 0
      token = truncated ? this.#drawTruncated(logits, options, sum, uniform) : this.#drawAll(sum * uniform)
    }
    return { token, logp: logits[token]! - logSumExp }
  }

  #drawAll(target: number): number {
    const weights = this.#weights
    let cumulative = 0
    let last = 0
    for (let id = 0; id < weights.length; id++) {
      const weight = weights[id]!
      if (weight === 0) continue
      cumulative += weight
      last = id
      if (cumulative > target) return id
    }
    // Rounding may leave the total below the target: the last possible token is meant.
    return last
  }

  #drawTruncated(logits: Float32Array, options: SamplerOptions, sum: number, uniform: number): number {
    const kept = this.#keep(logits, options, sum)
    let mass = 0
    for (const id of kept) mass += this.#weights[id]!
    let cumulative = 0
    for (const id of kept) {
      cumulative += this.#weights[id]!
      if (cumulative > mass * uniform) return id
    }
    return kept.at(-1)!
  }

  /**
   * The tokens that top-k, of these top-p, and of these min-p leave, in the order of transformers' warpers; likeliest
   * first, ties by rising id.
   */
  #keep(logits: Float32Array, { topK, topP, minP }: SamplerOptions, sum: number): readonly number[] {
    const weights = this.#weights
    // The greatest weight is 1: min-p is a floor below which nothing is kept, whatever else is.
    const likely = (id: number) => weights[id]! >= minP
    // Sorting the whole vocabulary is slow and almost never needed: widen the band below the greatest weight.
    for (let floor = 1e-3; ; floor = floor < 1e-12 ? 0 : floor * 1e-3) {
      const candidates: number[] = []
      for (let id = 0; id < logits.length; id++) if (weights[id]! >= floor) candidates.push(id)
      if (topK > 0 && candidates.length < topK && floor > 0) continue
      candidates.sort((a, b) => logits[b]! - logits[a]! || a - b)
      if (topK > 0) candidates.length = Math.min(candidates.length, topK)
      if (topP >= 1) {
        if (topK > 0 || floor <= minP) return candidates.filter(likely)
        continue
      }
      // top-p counts within what top-k left, as in transformers, where the one follows the other.
      const base = topK > 0 ? candidates.reduce((total, id) => total + weights[id]!, 0) : sum
      let mass = 0
      for (let count = 0; count < candidates.length; count++) {
        mass += weights[candidates[count]!]!
        if (mass >= topP * base) return candidates.slice(0, count + 1).filter(likely)
      }
      if (floor === 0) return candidates.filter(likely)
    }
  }
}
function argmax(logits: Float32Array): number {
  let best = -1
  let greatest = Number.NEGATIVE_INFINITY
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id]!
    if (logit > greatest) {
      greatest = logit
      best = id
    }
  }
  if (best < 0 || greatest === Number.POSITIVE_INFINITY) throw diverged('there is no finite greatest logit')
  return best
}

function diverged(what: string): GraspError {
  return new GraspError(
    'ENGINE_FAILED',
    `${what}: the weights have diverged in training, or were damaged before. Go back to an earlier checkpoint with a ` +
      'lower learning rate; for a model as it was fetched, fetch its files again.',
  )
}

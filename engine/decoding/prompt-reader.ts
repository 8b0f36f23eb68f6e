/**
 * Reads prompts into the cache, several at a time: threads wait for each other after each product, so larger ones are
 * faster. What a prompt gives does not depend, to the bit, on those that are read with it: so only parts of one length
 * go together.
 */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import type { Fetched } from '../runtime/session.ts'
import type { ForwardPasses } from './forward-passes.ts'
import { valuesPerToken } from './key-value-cache.ts'
import { LONGEST_PASS, MOST_BYTES_KEPT, MOST_TOKENS_SEEN } from './limits.ts'
import { LOGITS } from './names.ts'
import { type Pass, PromptPasses } from './prompt-passes.ts'

export interface PromptReaderOptions {
  /** Most tokens of a prompt read in one pass; beyond 128 counts as 128. */
  readonly tokensPerPass: number
  /** Tokens that end a message. */
  readonly turnEnds: ReadonlySet<number>
  /** Called before each pass through the model. */
  readonly check: () => void
}

/** A prompt's next pass. */
interface Reading {
  /** Its place among the prompts that are read together. */
  readonly index: number
  readonly row: number
  readonly prompt: Int32Array
  readonly pass: Pass
}

export class PromptReader {
  readonly #config: ModelConfig
  readonly #passes: ForwardPasses
  readonly #prompts: readonly Int32Array[]
  readonly #plan: PromptPasses<Fetched>
  readonly #check: () => void

  /** @param prompts of a call, each to be read once */
  constructor(
    config: ModelConfig,
    passes: ForwardPasses,
    prompts: readonly Int32Array[],
    { tokensPerPass, turnEnds, check }: PromptReaderOptions,
  ) {
    this.#config = config
    this.#passes = passes
    this.#prompts = prompts
    this.#check = check
    const tokens = Math.min(tokensPerPass, LONGEST_PASS)
    this.#plan = new PromptPasses(prompts, { tokens, turnEnds, bytes: MOST_BYTES_KEPT })
  }

  /**
   * Reads prompts, by their numbers, into rows of the cache from `row` on.
   * @returns the logits [V] of what follows each
   */
  async read(numbers: readonly number[], row: number): Promise<Float32Array[]> {
    const logits: Float32Array[] = new Array(numbers.length)
    const plans = numbers.map(number => this.#plan.of(number))
    const longest = Math.max(...plans.map(plan => plan.length))
    for (let nth = 0; nth < longest; nth++) {
      const readings = numbers.flatMap((number, index): Reading[] => {
        const pass = plans[index]![nth]
        return pass ? [{ index, row: row + index, prompt: this.#prompts[number]!, pass }] : []
      })
      for (const group of this.#groups(readings)) await this.#readGroup(group, readings, logits)
    }
    return logits
  }

  /** Readings of what is not known yet, one for each prefix, as they go together. Known ones come first, alone. */
  #groups(readings: readonly Reading[]): Reading[][] {
    const first = new Map<string, Reading>()
    for (const reading of readings) {
      const { prefix } = reading.pass
      if (!first.has(prefix)) first.set(prefix, reading)
    }
    const groups: Reading[][] = []
    const alike = new Map<string, Reading[]>()
    for (const reading of first.values()) {
      const { start, end, last } = reading.pass
      if (this.#plan.keeps(reading.pass)) groups.push([reading])
      else {
        const key = `${start} ${end} ${last}`
        alike.set(key, [...(alike.get(key) ?? []), reading])
      }
    }
    for (const all of alike.values()) {
      for (let from = 0; from < all.length; ) {
        const size = this.#groupSize(all.length - from, all[0]!.pass)
        groups.push(all.slice(from, from + size))
        from += size
      }
    }
    return groups
  }

  /** How many of so many prompts go together that are as far. */
  #groupSize(count: number, { end }: Pass): number {
    return Math.min(count, Math.max(1, Math.floor(MOST_TOKENS_SEEN / end)))
  }

  /** Reads a group, and lets all readings have what it gave that begin like one of its own. */
  async #readGroup(
    group: readonly Reading[],
    readings: readonly Reading[],
    logits: Float32Array[],
  ): Promise<void> {
    const places = new Map(group.map(({ pass }, place) => [pass.prefix, place]))
    let fetched: Fetched | undefined
    for (const { index, row, pass } of readings) {
      const place = places.get(pass.prefix)
      if (place === undefined) continue
      const { start, end, last } = pass
      const shared = this.#plan.isShared(pass)
      const values = (end - start) * valuesPerToken(this.#config) + (last ? this.#config.vocabularySize : 0)
      const own = await this.#plan.read(pass, Float32Array.BYTES_PER_ELEMENT * values, async () => {
        fetched ??= await this.#run(group)
        return partOf(fetched, place, group.length, shared)
      })
      this.#passes.cache.append(own, [row], [start], [end - start])
      if (last) logits[index] = own[LOGITS]!.data as Float32Array
    }
  }

  #run(group: readonly Reading[]): Promise<Fetched> {
    this.#check()
    const parts = group.map(({ row, prompt, pass: { start, end } }) => ({
      row,
      tokens: prompt.subarray(start, end),
      first: start,
    }))
    return this.#passes.read(parts, group[0]!.pass.last)
  }
}

/** What a pass of `parts` prompts gave for one of them. @param copy what it is made of need not be held any longer. */
function partOf(fetched: Fetched, part: number, parts: number, copy: boolean): Fetched {
  if (parts === 1) return fetched
  const tensors = Object.entries(fetched).map(([name, { data, dims }]) => {
    const all = data as Float32Array
    const size = all.length / parts
    const own = all.subarray(part * size, (part + 1) * size)
    return [name, new Tensor('float32', copy ? own.slice() : own, [dims[0]! / parts, ...dims.slice(1)])]
  })
  return Object.fromEntries(tensors)
}

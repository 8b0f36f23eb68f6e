/**
 * Samples responses for many prompts, up to 32 at a time; a row that ends makes room for the next.
 *
 * Beside its newest token a step reads what may follow (drafts.ts): a draft's token that is drawn in its turn was read
 * already, and the next is drawn at once. Drafts decide over nothing but the time: every token is drawn from the
 * model's own logits by the numbers of its own stream, and keys and values of tokens that were not drawn are not kept.
 *
 * A response does not depend on what is decoded or drafted beside it, to the bit. With a packed matrix onnxruntime adds
 * the terms of each element in the same order, however many rows a product has and however threads share it out. Keys
 * lie in blocks of 16 tokens, and a token sees its own block apart from those before it however many tokens of it are
 * read at once, so that attention's sums are alike; a step counts up to the end of a block. Of a softmax the block comes
 * first, and then the other tokens, each in the same place however long other sequences are.
 */
import type { ModelConfig } from '../architectures/config.ts'
import type { Generation, SamplingOptions } from '../port.ts'
import { Sampler } from '../sampling/sampler.ts'
import type { Weights } from '../weights/weights.ts'
import { Drafts, type TextDraft } from './drafts.ts'
import { ForwardPasses } from './forward-passes.ts'
import { BLOCK, blockStart, KeyValueCache, MOST_TOKENS } from './key-value-cache.ts'
import { MOST_SEQUENCES } from './limits.ts'
import { LOGITS } from './names.ts'
import { lookUp } from './prompt-lookup.ts'
import { PromptReader } from './prompt-reader.ts'
import { checkRequest, drawToken, type Request, type Row } from './row.ts'

export interface DecoderOptions {
  readonly threads: number
  /** Most tokens of a prompt read in one pass; beyond 128 counts as 128. */
  readonly tokensPerPass: number
  /** Most sequences decoded together; beyond 32 counts as 32. */
  readonly sequencesPerPass: number
  readonly stopTokens: readonly number[]
  /** Guesses what follows from the text; `lookUp` by default. */
  readonly textDraft?: TextDraft
}

export class Decoder {
  readonly #config: ModelConfig
  readonly #options: DecoderOptions
  readonly #passes: ForwardPasses
  readonly #sampler: Sampler
  readonly #drafts: Drafts
  readonly #stop: ReadonlySet<number>

  private constructor(config: ModelConfig, options: DecoderOptions, passes: ForwardPasses) {
    this.#config = config
    this.#options = options
    this.#passes = passes
    this.#sampler = new Sampler(config.vocabularySize)
    this.#drafts = new Drafts(options.textDraft ?? lookUp)
    this.#stop = new Set(options.stopTokens)
  }

  static async create(config: ModelConfig, options: DecoderOptions): Promise<Decoder> {
    const cache = new KeyValueCache(config)
    const passes = await ForwardPasses.create(config, { threads: options.threads, cache })
    return new Decoder(config, options, passes)
  }

  /**
   * One call at a time: they share the cache.
   * @returns one generation a request, in order.
   * @throws GraspError PROMPT_TOO_LONG when a prompt with maxNewTokens exceeds the context, PROMPT_INVALID when
   * it is empty; before anything is decoded.
   * @param check called before each pass through the model: what it throws ends the call
   */
  async generate(
    weights: Weights,
    requests: readonly Request[],
    sampling: SamplingOptions,
    check: () => void = () => {},
  ): Promise<Generation[]> {
    for (const request of requests) checkRequest(this.#config, request, sampling.maxNewTokens)
    if (requests.length === 0) return []
    const capacity = Math.min(this.#options.sequencesPerPass, MOST_SEQUENCES, requests.length)
    const longest = Math.max(...requests.map(request => request.prompt.length))
    const room = Math.max(capacity, this.#passes.fewestRows)
    this.#passes.cache.reserve(room, longest + sampling.maxNewTokens)
    check()
    try {
      await this.#passes.use(weights)
      return await this.#decode(requests, sampling, capacity, check)
    } catch (error) {
      // Weights that diverged leave values in the cache that even a zero share of attention would not erase.
      this.#passes.cache.clear()
      throw error
    } finally {
      this.#passes.letGo()
    }
  }

  /** Lets go of the copies of weights that decoding needs: others are about to be made. */
  forget(): Promise<void> {
    return this.#passes.release()
  }

  async release(): Promise<void> {
    this.#passes.cache.clear()
    await this.forget()
  }

  async #decode(
    requests: readonly Request[],
    sampling: SamplingOptions,
    capacity: number,
    check: () => void,
  ): Promise<Generation[]> {
    const results: Generation[] = new Array(requests.length)
    const prompts = new PromptReader(
      this.#config,
      this.#passes,
      requests.map(({ prompt }) => prompt),
      { ...this.#options, turnEnds: this.#stop, check },
    )
    const rows: Row[] = []
    let next = 0
    /** Draws the row's next token; true when it was the last. */
    const ends = (row: Row, logits: Float32Array): boolean => {
      const finished = drawToken(this.#sampler, this.#stop, row, logits, sampling)
      if (finished) results[row.index] = finished
      return finished !== undefined
    }
    const leave = (ended: ReadonlySet<Row>) => {
      // From the last row on, so that the row that fills a gap is one that goes on.
      for (let slot = rows.length - 1; slot >= 0; slot--) {
        if (!ended.has(rows[slot]!)) continue
        const filler = rows.pop()!
        if (slot === rows.length) continue
        rows[slot] = filler
        this.#passes.cache.move(rows.length, slot)
      }
    }
    while (next < requests.length || rows.length > 0) {
      while (rows.length < capacity && next < requests.length) {
        const admitted = requests.slice(next, next + capacity - rows.length)
        const begun = admitted.map(
          (request, i): Row => ({
            index: next + i,
            request,
            sequence: Array.from(request.prompt),
            logp: [],
          }),
        )
        const logits = await prompts.read(
          begun.map(({ index }) => index),
          rows.length,
        )
        next += begun.length
        rows.push(...begun)
        leave(new Set(begun.filter((row, i) => ends(row, logits[i]!))))
      }
      if (rows.length === 0) continue
      check()
      leave(await this.#step(rows, sampling, ends))
    }
    return results
  }

  /**
   * Reads each row's newest token with a draft of what follows, and draws tokens as long as the draft foretold them.
   * Gives the rows that ended.
   */
  async #step(
    rows: readonly Row[],
    sampling: SamplingOptions,
    ends: (row: Row, logits: Float32Array) => boolean,
  ): Promise<ReadonlySet<Row>> {
    const { vocabularySize: V } = this.#config
    const heads = rows.map(({ sequence, logp }) => {
      const first = sequence.length - 1
      const block = blockStart(first)
      // No token counts beyond the end of the block, and none is drawn after the last.
      const room = Math.min(MOST_TOKENS, block + BLOCK - first, sampling.maxNewTokens - logp.length) - 1
      return { sequence, first, block, room }
    })
    const drafts = this.#drafts.propose(heads)
    const parts = heads.map(({ sequence, first, block }, slot) => ({
      tokens: [sequence.at(-1)!, ...drafts[slot]!],
      first,
      block,
    }))
    const fetched = await this.#passes.step(parts)
    const logits = fetched[LOGITS]!.data as Float32Array
    const ended = new Set<Row>()
    const counts = rows.map((row, slot) => {
      const { tokens } = parts[slot]!
      const most = Math.min(tokens.length, heads[slot]!.room + 1)
      let count = 0
      let at = slot * tokens.length * V
      do {
        if (ends(row, logits.subarray(at, at + V))) ended.add(row)
        count++
        at += V
      } while (!ended.has(row) && count < most && row.sequence.at(-1) === tokens[count])
      return count
    })
    this.#passes.cache.append(
      fetched,
      rows.map((_, slot) => slot),
      parts.map(({ first }) => first),
      counts,
    )
    // The last token drawn is the first that was not foretold, unless the row ended or its draft did.
    const looked = counts.map((count, slot) => Math.min(count, drafts[slot]!.length))
    this.#drafts.learn(
      looked,
      counts.map(count => count - 1),
    )
    return ended
  }
}

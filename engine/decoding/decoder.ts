/**
 * Samples responses for many prompts, up to 16 or up to 32 at a time; a row that ends makes room for the next.
 *
 * A response does not depend on what is decoded beside it, to the bit. onnxruntime's matrix product blocks the
 * inner dimension by the number of columns (1, 2–16, 17–32, 33–64, more), and so adds its terms in different
 * orders. So prompts are read one by one, and the steps of a decoder run either with 2 to 16 rows or with 17 to 32,
 * some of which may only fill up; the second takes a third longer, for twice the sequences. The cache's length is a
 * multiple of 64, so that sums over it end alike however much room there is.
 *
 * Nor does it depend on the number of threads, where projections are at least 128 wide: threads share out the
 * larger side of a product, which must not be the columns, so a pass reads at most 128 tokens.
 */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import { rotaryTables } from '../architectures/rotary-tables.ts'
import type { Generation, SamplingOptions } from '../port.ts'
import { type Feeds, type Fetched, Session } from '../runtime/session.ts'
import { Sampler } from '../sampling/sampler.ts'
import type { Weights } from '../weights/weights.ts'
import { decodeGraph } from './decode-graph.ts'
import { KeyValueCache, valuesPerToken } from './key-value-cache.ts'
import { maskFeeds } from './masks.ts'
import { cacheNames, INPUT, LOGITS } from './names.ts'
import { PromptPasses } from './prompt-passes.ts'
import { checkRequest, drawToken, type Request, type Row } from './row.ts'

/** Rows of a step: see above. */
interface RowLimits {
  readonly fewest: number
  readonly most: number
}
const FEW: RowLimits = { fewest: 2, most: 16 }
const MANY: RowLimits = { fewest: 17, most: 32 }
/** Most tokens of a prompt read in one pass. Longer passes are not faster. */
const LONGEST_PASS = 128
/** Of passes that several prompts of a call have in common. */
const MOST_BYTES_KEPT = 256 * 2 ** 20

export interface DecoderOptions {
  readonly threads: number
  /** Most tokens of a prompt read in one pass; beyond 128 counts as 128. */
  readonly tokensPerPass: number
  /**
   * Most sequences decoded together; beyond 32 counts as 32. Whether it is beyond 16 decides over the last bits of
   * what is decoded, the number itself does not.
   */
  readonly sequencesPerPass: number
  readonly stopTokens: readonly number[]
}

export type { Request }

export class Decoder {
  readonly #config: ModelConfig
  readonly #options: DecoderOptions
  readonly #session: Session
  readonly #cache: KeyValueCache
  readonly #sampler: Sampler
  readonly #rows: RowLimits
  readonly #rotary: Feeds
  readonly #stop: ReadonlySet<number>
  readonly #outputs: Readonly<Record<string, null>>

  private constructor(config: ModelConfig, options: DecoderOptions, session: Session) {
    this.#config = config
    this.#options = options
    this.#session = session
    this.#cache = new KeyValueCache(config)
    this.#sampler = new Sampler(config.vocabularySize)
    this.#rows = options.sequencesPerPass <= FEW.most ? FEW : MANY
    const { cos, sin } = rotaryTables(config)
    this.#rotary = { [INPUT.cosines]: cos, [INPUT.sines]: sin }
    this.#stop = new Set(options.stopTokens)
    const names = [LOGITS]
    for (let layer = 0; layer < config.layers; layer++) {
      const { newKeys, newValues } = cacheNames(layer)
      names.push(newKeys, newValues)
    }
    this.#outputs = Object.fromEntries(names.map(name => [name, null]))
  }

  static async create(config: ModelConfig, options: DecoderOptions): Promise<Decoder> {
    const session = await Session.create('decode', decodeGraph(config), { threads: options.threads })
    return new Decoder(config, options, session)
  }

  /**
   * @returns one generation a request, in order.
   * @throws GraspError PROMPT_TOO_LONG when a prompt with maxNewTokens exceeds the context, PROMPT_INVALID when
   * it is empty; before anything is decoded.
   */
  async generate(
    weights: Weights,
    requests: readonly Request[],
    sampling: SamplingOptions,
  ): Promise<Generation[]> {
    for (const request of requests) checkRequest(this.#config, request, sampling.maxNewTokens)
    if (requests.length === 0) return []
    const capacity = Math.min(this.#options.sequencesPerPass, this.#rows.most, requests.length)
    const longest = Math.max(...requests.map(request => request.prompt.length))
    this.#cache.reserve(capacity, longest + sampling.maxNewTokens)
    this.#cache.grow(longest)
    try {
      return await this.#decode(
        { ...Object.fromEntries(weights), ...this.#rotary },
        requests,
        sampling,
        capacity,
      )
    } catch (error) {
      // Weights that diverged leave values in the cache that even a zero share of attention would not erase.
      this.#cache.clear()
      throw error
    }
  }

  async release(): Promise<void> {
    this.#cache.clear()
    await this.#session.release()
  }

  async #decode(
    fixed: Feeds,
    requests: readonly Request[],
    sampling: SamplingOptions,
    capacity: number,
  ): Promise<Generation[]> {
    const { vocabularySize: V } = this.#config
    const results: Generation[] = new Array(requests.length)
    const passes = new PromptPasses<Fetched>(
      requests.map(({ prompt }) => prompt),
      {
        tokens: Math.min(this.#options.tokensPerPass, LONGEST_PASS),
        turnEnds: this.#stop,
        bytes: MOST_BYTES_KEPT,
      },
    )
    const rows: Row[] = []
    let next = 0
    /** Draws the row's next token; true when it was the last. */
    const ends = (row: Row, logits: Float32Array): boolean => {
      const finished = drawToken(this.#sampler, this.#stop, row, logits, sampling)
      if (finished) results[row.index] = finished
      return finished !== undefined
    }
    while (next < requests.length || rows.length > 0) {
      while (rows.length < capacity && next < requests.length) {
        const row: Row = { index: next, request: requests[next]!, ids: [], logp: [] }
        next++
        if (!ends(row, await this.#read(fixed, rows.length, row, passes))) rows.push(row)
      }
      if (rows.length === 0) continue
      const logits = await this.#step(fixed, rows)
      // From the last row on, so that the row that fills a gap has had its token already.
      for (let slot = rows.length - 1; slot >= 0; slot--) {
        if (!ends(rows[slot]!, logits.subarray(slot * V, (slot + 1) * V))) continue
        const filler = rows.pop()!
        if (slot === rows.length) continue
        rows[slot] = filler
        this.#cache.move(rows.length, slot)
      }
    }
    return results
  }

  /** Reads a row's prompt into a row of the cache and gives the logits [V] of the first response token. */
  async #read(
    fixed: Feeds,
    slot: number,
    { index, request: { prompt } }: Row,
    passes: PromptPasses<Fetched>,
  ): Promise<Float32Array> {
    let logits: Float32Array | undefined
    for (const pass of passes.of(index)) {
      const { start, end } = pass
      const count = end - start
      const bytes = 4 * (count * valuesPerToken(this.#config) + this.#config.vocabularySize)
      const fetched = await passes.read(pass, bytes, () =>
        this.#run({
          ...fixed,
          ...this.#cache.prefix(slot, start),
          ...this.#feeds(
            prompt.slice(start, end),
            1,
            Int32Array.from({ length: count }, (_, i) => start + i),
            Int32Array.of(count - 1),
          ),
          ...maskFeeds(this.#config, { firsts: [start], tokens: count, cached: start }),
        }),
      )
      this.#cache.append(fetched, [slot], [start])
      logits = fetched[LOGITS]!.data as Float32Array
    }
    return logits!
  }

  /** Reads each row's newest token and gives the logits [rows, V] of what follows. */
  async #step(fixed: Feeds, rows: readonly Row[]): Promise<Float32Array> {
    const count = rows.length
    const positions = Int32Array.from(rows, row => row.request.prompt.length + row.ids.length - 1)
    const tokens = new Int32Array(Math.max(count, this.#rows.fewest))
    rows.forEach((row, slot) => {
      tokens[slot] = row.ids.at(-1)!
    })
    this.#cache.grow(Math.max(...positions) + 1)
    const fetched = await this.#run({
      ...fixed,
      ...this.#cache.rows(count),
      ...this.#feeds(
        tokens,
        count,
        positions,
        tokens.map((_, slot) => slot),
      ),
      ...maskFeeds(this.#config, { firsts: positions, tokens: 1, cached: this.#cache.length }),
    })
    this.#cache.append(fetched, [...rows.keys()], positions)
    return fetched[LOGITS]!.data as Float32Array
  }

  /** @param positions of the tokens that do not only fill up, in `rows` rows. */
  #feeds(tokens: Int32Array, rows: number, positions: Int32Array, last: Int32Array): Feeds {
    const { heads, headDim } = this.#config
    const real = positions.length
    return {
      [INPUT.tokens]: new Tensor('int32', tokens, [tokens.length]),
      [INPUT.positions]: new Tensor('int64', BigInt64Array.from(positions, BigInt), [rows, real / rows]),
      [INPUT.last]: new Tensor('int32', last, [last.length]),
      [INPUT.filler]: zeros([tokens.length - real, heads * headDim]),
    }
  }

  #run(feeds: Feeds): Promise<Fetched> {
    return this.#session.run(feeds, this.#outputs)
  }
}

function zeros(dims: readonly number[]): Tensor {
  const size = dims.reduce((product, length) => product * length, 1)
  return new Tensor('float32', new Float32Array(size), dims)
}

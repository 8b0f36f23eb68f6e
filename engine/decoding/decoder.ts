/**
 * Samples responses for many prompts, up to 16 at a time; a row that ends makes room for the next prompt.
 *
 * A response does not depend on what is decoded beside it, to the bit: prompts are read one by one, and
 * steps run with 2 to 16 rows, a range in which the matrix product adds its terms in one order. (It blocks
 * the inner dimension by the number of columns: one way for a single column, another for 2–16, others
 * beyond.) More rows would gain little: at 16 the step is bound by arithmetic.
 */
import { Tensor } from 'onnxruntime-node'
import { GraspError } from '../../errors/grasp-error.ts'
import type { ModelConfig } from '../architectures/config.ts'
import { rotaryTables } from '../architectures/rotary-tables.ts'
import type { Generation, SamplingOptions } from '../port.ts'
import { type Feeds, type Fetched, Session } from '../runtime/session.ts'
import type { RandomStream } from '../sampling/random-stream.ts'
import { Sampler } from '../sampling/sampler.ts'
import type { Weights } from '../weights/weights.ts'
import { decodeGraph, INPUT, LOGITS } from './decode-graph.ts'
import { KeyValueCache } from './key-value-cache.ts'

const FEWEST_ROWS = 2
const MOST_ROWS = 16

export interface DecoderOptions {
  readonly threads: number
  /** Most tokens of a prompt read in one pass. */
  readonly tokensPerPass: number
  /** Most sequences decoded together; beyond 16 counts as 16. */
  readonly sequencesPerPass: number
  readonly stopTokens: readonly number[]
}

export interface Request {
  /** Names the prompt in errors. */
  readonly key: string
  readonly prompt: Int32Array
  readonly random: RandomStream
}

/** A sequence being decoded. */
interface Row {
  readonly index: number
  readonly request: Request
  readonly ids: number[]
  readonly logp: number[]
}

export class Decoder {
  readonly #config: ModelConfig
  readonly #options: DecoderOptions
  readonly #session: Session
  readonly #cache: KeyValueCache
  readonly #sampler: Sampler
  readonly #rotary: Feeds
  readonly #stop: ReadonlySet<number>

  private constructor(config: ModelConfig, options: DecoderOptions, session: Session) {
    this.#config = config
    this.#options = options
    this.#session = session
    this.#cache = new KeyValueCache(config)
    this.#sampler = new Sampler(config.vocabularySize)
    const { cos, sin } = rotaryTables(config)
    this.#rotary = { [INPUT.cosines]: cos, [INPUT.sines]: sin }
    this.#stop = new Set(options.stopTokens)
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
    for (const request of requests) this.#check(request, sampling.maxNewTokens)
    const results: Generation[] = new Array(requests.length)
    if (requests.length === 0) return results
    const capacity = Math.min(this.#options.sequencesPerPass, MOST_ROWS, requests.length)
    const longest = Math.max(...requests.map(request => request.prompt.length))
    this.#cache.reserve(Math.max(capacity, FEWEST_ROWS), longest + sampling.maxNewTokens)
    const fixed: Feeds = { ...Object.fromEntries(weights), ...this.#rotary }

    const rows: Row[] = []
    let next = 0
    const take = (row: Row, logits: Float32Array): boolean => {
      const finished = this.#draw(row, logits, sampling)
      if (finished) results[row.index] = finished
      return finished !== undefined
    }
    while (next < requests.length || rows.length > 0) {
      while (rows.length < capacity && next < requests.length) {
        const row: Row = { index: next, request: requests[next]!, ids: [], logp: [] }
        next++
        if (!take(row, await this.#prefill(fixed, rows.length, row.request.prompt))) rows.push(row)
      }
      if (rows.length === 0) continue
      const logits = await this.#step(fixed, rows)
      const { vocabularySize: V } = this.#config
      // From the last row on, so that the row that fills a gap has had its token already.
      for (let slot = rows.length - 1; slot >= 0; slot--) {
        if (!take(rows[slot]!, logits.subarray(slot * V, (slot + 1) * V))) continue
        const filler = rows.pop()!
        if (slot === rows.length) continue
        rows[slot] = filler
        this.#cache.move(rows.length, slot)
      }
    }
    return results
  }

  async release(): Promise<void> {
    await this.#session.release()
  }

  #check({ key, prompt }: Request, maxNewTokens: number): void {
    if (prompt.length === 0) throw new GraspError('PROMPT_INVALID', `the prompt of ${key} has no tokens`)
    if (prompt.length + maxNewTokens > this.#config.contextLength) {
      throw new GraspError(
        'PROMPT_TOO_LONG',
        `the prompt of ${key} has ${prompt.length} tokens; with ${maxNewTokens} new ones it exceeds the model's ` +
          `context of ${this.#config.contextLength}. Use fewer or shorter profile entries, or fewer new tokens.`,
      )
    }
  }

  /** Reads a prompt into a cache row and gives the logits [V] of the first response token. */
  async #prefill(fixed: Feeds, slot: number, prompt: Int32Array): Promise<Float32Array> {
    const { past, present } = this.#cache.tensors(slot, 1)
    let logits: Float32Array | undefined
    for (let start = 0; start < prompt.length; start += this.#options.tokensPerPass) {
      const tokens = prompt.slice(start, start + this.#options.tokensPerPass)
      const read = start + tokens.length
      const fetched = await this.#run(fixed, past, present, tokens, [1, tokens.length], {
        last: Int32Array.of(tokens.length - 1),
        lengths: Int32Array.of(read - 1),
        positions: Int32Array.from(tokens, (_, i) => start + i),
        total: read,
      })
      logits = fetched[LOGITS]!.data as Float32Array
    }
    return logits!
  }

  /** Reads each row's newest token and gives the logits [rows, V] of what follows. */
  async #step(fixed: Feeds, rows: readonly Row[]): Promise<Float32Array> {
    const count = Math.max(rows.length, FEWEST_ROWS)
    const tokens = new Int32Array(count)
    // A row that only pads reads token 0 at position 0 of its own cache.
    const lengths = new Int32Array(count)
    rows.forEach((row, slot) => {
      tokens[slot] = row.ids.at(-1)!
      lengths[slot] = row.request.prompt.length + row.ids.length - 1
    })
    const { past, present } = this.#cache.tensors(0, count)
    const fetched = await this.#run(fixed, past, present, tokens, [count, 1], {
      last: Int32Array.from(tokens, (_, slot) => slot),
      lengths,
      positions: lengths,
      total: Math.max(...lengths) + 1,
    })
    return fetched[LOGITS]!.data as Float32Array
  }

  #run(
    fixed: Feeds,
    past: Feeds,
    present: Feeds,
    tokens: Int32Array,
    dims: readonly number[],
    at: {
      readonly last: Int32Array
      readonly lengths: Int32Array
      readonly positions: Int32Array
      readonly total: number
    },
  ): Promise<Fetched> {
    const feeds = {
      ...fixed,
      ...past,
      [INPUT.tokens]: new Tensor('int32', tokens, dims),
      [INPUT.last]: new Tensor('int32', at.last, [at.last.length]),
      [INPUT.lengths]: new Tensor('int32', at.lengths, [at.lengths.length]),
      [INPUT.positions]: new Tensor('int64', BigInt64Array.from(at.positions, BigInt), dims),
      [INPUT.total]: new Tensor('int32', Int32Array.of(at.total), [1]),
    }
    return this.#session.run(feeds, { ...present, [LOGITS]: null })
  }

  /** Draws the row's next token; gives the generation when it is the last one. */
  #draw(row: Row, logits: Float32Array, sampling: SamplingOptions): Generation | undefined {
    const { token, logp } = this.#sampler.draw(logits, sampling, row.request.random(row.ids.length))
    row.ids.push(token)
    row.logp.push(logp)
    const stopped = this.#stop.has(token)
    if (!stopped && row.ids.length < sampling.maxNewTokens) return undefined
    return {
      ids: Int32Array.from(row.ids),
      finish: stopped ? 'stop' : 'length',
      logp: Float32Array.from(row.logp),
    }
  }
}

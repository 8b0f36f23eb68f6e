/**
 * The two kinds of passes through the model: one that reads parts of prompts, and a step that reads the newest
 * tokens of several sequences.
 */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import { rotaryTables } from '../architectures/rotary-tables.ts'
import { type Feeds, type Fetched, Session } from '../runtime/session.ts'
import { unsharedProducts } from '../runtime/unshared-products.ts'
import type { Weights } from '../weights/weights.ts'
import { decodeGraph, matricesOf } from './decode-graph.ts'
import { type KeyValueCache, PLACES } from './key-value-cache.ts'
import { fewestRows } from './layer-operations.ts'
import { maskFeeds, type PassExtent } from './masks.ts'
import { cacheNames, INPUT, LOGITS } from './names.ts'

/** A step is some 1,000 operations, of which many take less time than waking a thread. */
const SPIN_MICROSECONDS = 50

/** Tokens of a sequence. */
export interface Part {
  readonly tokens: ArrayLike<number>
  /** Position of the first of them: as many tokens are in the cache before it. */
  readonly first: number
  /** Where the cache's block begins that they are read into. */
  readonly block: number
}

/** Some tokens of a prompt, of which a row of the cache holds those before. */
export interface PromptPart {
  readonly row: number
  readonly tokens: Int32Array
  /** Position of the first of them. */
  readonly first: number
}

export interface PassesOptions {
  readonly cache: KeyValueCache
  readonly threads: number
}

export class ForwardPasses {
  readonly cache: KeyValueCache
  /** Fewer rows of the cache are filled up to so many. */
  readonly fewestRows: number
  readonly #config: ModelConfig
  readonly #threads: number
  readonly #graph: Uint8Array
  readonly #outputs: Readonly<Record<string, null>>
  readonly #rotary: Feeds
  /** The graph with the matrices of some weights, which are not to be held longer than others hold them. */
  #packed: { readonly session: Session; readonly of: WeakRef<Weights> } | undefined
  /** What the graph takes of the weights beside their matrices. */
  #weights: Feeds = {}

  private constructor(config: ModelConfig, { cache, threads }: PassesOptions, products: number) {
    this.cache = cache
    this.fewestRows = fewestRows(config, products)
    this.#config = config
    this.#threads = threads
    this.#graph = decodeGraph(config, products)
    const { cos, sin } = rotaryTables(config)
    this.#rotary = { [INPUT.cosines]: cos, [INPUT.sines]: sin }
    const names = [LOGITS]
    for (let layer = 0; layer < config.layers; layer++) {
      const { newKeys, newValues } = cacheNames(layer)
      names.push(newKeys, newValues)
    }
    this.#outputs = Object.fromEntries(names.map(name => [name, null]))
  }

  static async create(config: ModelConfig, options: PassesOptions): Promise<ForwardPasses> {
    return new ForwardPasses(config, options, await unsharedProducts(options.threads))
  }

  /** Passes use these from now on. Their matrices are copied, packed as the kernels read them, unless they are already. */
  async use(weights: Weights): Promise<void> {
    if (this.#packed?.of.deref() !== weights) {
      // Two at a time would take the memory of two.
      await this.release()
      this.#packed = { session: await this.#pack(weights), of: new WeakRef(weights) }
    }
    const inputs = new Set(this.#packed!.session.inputs)
    this.#weights = Object.fromEntries([...weights].filter(([name]) => inputs.has(name)))
  }

  /** Holds the weights no longer, until they are given again; their packed matrices stay. */
  letGo(): void {
    this.#weights = {}
  }

  /** Lets go of packed matrices, too. */
  async release(): Promise<void> {
    this.letGo()
    const packed = this.#packed
    // Whatever becomes of it, it is not used again.
    this.#packed = undefined
    await packed?.session.release()
  }

  #pack(weights: Weights): Promise<Session> {
    const names = [...matricesOf(this.#config).keys()]
    const external = new Map(names.map(name => [name, weights.get(name)!]))
    const options = { threads: this.#threads, spinMicroseconds: SPIN_MICROSECONDS, external }
    return Session.create('decode', this.#graph, options)
  }

  /**
   * Reads parts of prompts, equally long and equally far on, each after what its row of the cache holds.
   * @param wanted whether there are to be logits [parts, V], of the tokens that follow; else they are [0, V].
   */
  async read(parts: readonly PromptPart[], wanted: boolean): Promise<Fetched> {
    const { first, tokens } = parts[0]!
    const count = tokens.length
    const ids = new Int32Array(parts.length * count)
    parts.forEach((part, b) => {
      ids.set(part.tokens, b * count)
    })
    const firsts = parts.map(() => first)
    const rows = parts.map(({ row }) => row)
    const last = wanted ? parts.map((_, b) => b * count + count - 1) : []
    const spare = this.#spare(rows.length)
    return this.#run(
      this.cache.prefixes(rows, first, count, spare),
      ids,
      { firsts, starts: firsts, tokens: count, cached: first, places: count, spare },
      last,
    )
  }

  /**
   * Reads equally many tokens of each of the first rows of the cache. The logits are [rows · tokens, V]; those beyond
   * the end of a row's block count for nothing.
   */
  step(rows: readonly Part[]): Promise<Fetched> {
    const tokens = rows[0]!.tokens.length
    const ids = new Int32Array(rows.length * tokens)
    rows.forEach((row, b) => {
      ids.set(row.tokens, b * tokens)
    })
    const firsts = rows.map(({ first }) => first)
    const starts = rows.map(({ block }) => block)
    const spare = this.#spare(rows.length)
    return this.#run(
      this.cache.rows(rows.length + spare),
      ids,
      { firsts, starts, tokens, cached: this.cache.length, places: PLACES, spare },
      ids.map((_, n) => n),
    )
  }

  /** How many rows fill up so many. */
  #spare(rows: number): number {
    return Math.max(0, this.fewestRows - rows)
  }

  #run(cache: Feeds, ids: Int32Array, extent: PassExtent, last: ArrayLike<number>): Promise<Fetched> {
    const { contextLength } = this.#config
    const { firsts, tokens } = extent
    const rows = firsts.length
    // Drafts may reach beyond the context, where the tables of positions end. Their results are of no use.
    const positions = Int32Array.from({ length: rows * tokens }, (_, n) =>
      Math.min(firsts[Math.floor(n / tokens)]! + (n % tokens), contextLength - 1),
    )
    const feeds = {
      ...this.#rotary,
      ...this.#weights,
      ...cache,
      ...(this.fewestRows > 1 && { [INPUT.spare]: int64([extent.spare], [1]) }),
      ...maskFeeds(this.#config, extent),
      [INPUT.tokens]: new Tensor('int32', ids, [ids.length]),
      [INPUT.positions]: int64(positions, [rows, tokens]),
      [INPUT.last]: new Tensor('int32', Int32Array.from(last), [last.length]),
    }
    return this.#packed!.session.run(feeds, this.#outputs)
  }
}

function int64(values: ArrayLike<number>, dims: readonly number[]): Tensor {
  return new Tensor('int64', BigInt64Array.from(Array.from(values), BigInt), dims)
}

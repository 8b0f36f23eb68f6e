/**
 * Byte-pair encoding of one piece of text (Sennrich et al., arXiv:1508.07909): of all pairs of neighbours that have a
 * merge, the one with the lowest rank is merged, the leftmost of equals first, until none is left.
 *
 * In place of the library's own, whose time grows faster than the text does: a piece without word breaks (a post of
 * one long line, or any text of a model that does not split at spaces) took 20 s to minutes for 2 MB. Here a heap over
 * typed arrays takes O(n log n) for n characters.
 */
import { GraspError } from '../../errors/grasp-error.ts'
import { MinHeap } from './min-heap.ts'
import { PairRanks } from './pair-ranks.ts'

/** Shorter pieces are words, which come again. */
const LONGEST_REMEMBERED = 64
const MOST_REMEMBERED = 20_000

/** A heap's key holds rank and position: 2^52 = 2^21 ranks × 2^31 positions. */
const POSITIONS = 2 ** 31

const NONE = -1

export class BytePairMerges {
  readonly #ids: ReadonlyMap<string, number>
  /** By id. */
  readonly #tokens: readonly string[]
  readonly #ranks: PairRanks
  /** Rank → id of what the merge makes. */
  readonly #merged: Int32Array
  readonly #known = new Map<string, readonly string[]>()

  /**
   * @param path names tokenizer.json in errors. @param vocabulary token → id.
   * @param merges in the order of their ranks. @param forbidden tokens that text must never become.
   * @throws GraspError MODEL_INVALID for a merge of or into what is no token.
   */
  constructor(
    path: string,
    vocabulary: Readonly<Record<string, number>>,
    merges: readonly (string | readonly [string, string])[],
    forbidden: ReadonlySet<string> = new Set(),
  ) {
    this.#ids = new Map(Object.entries(vocabulary))
    const tokens: string[] = []
    for (const [token, id] of this.#ids) tokens[id] = token
    this.#tokens = tokens
    this.#ranks = new PairRanks(merges.length)
    this.#merged = new Int32Array(merges.length)
    merges.forEach((merge, rank) => {
      const [left, right] = sides(path, merge)
      if (forbidden.has(left) || forbidden.has(right) || forbidden.has(left + right)) return
      this.#merged[rank] = this.#id(path, left + right)
      this.#ranks.add(this.#id(path, left), this.#id(path, right), rank)
    })
  }

  /** The tokens of a piece. Characters that are no token stay as they are. */
  split(piece: string): readonly string[] {
    if (piece.length > LONGEST_REMEMBERED) return this.#split(piece)
    const known = this.#known.get(piece)
    if (known) return known
    const tokens = this.#split(piece)
    if (this.#known.size >= MOST_REMEMBERED) this.#known.clear()
    this.#known.set(piece, tokens)
    return tokens
  }

  #split(piece: string): string[] {
    const characters = Array.from(piece)
    const count = characters.length
    const ids = Int32Array.from(characters, character => this.#ids.get(character) ?? NONE)
    // Neighbours that are still there; a symbol that was merged away has the id NONE and is nobody's neighbour.
    const next = Int32Array.from(ids, (_, at) => (at + 1 < count ? at + 1 : NONE))
    const previous = Int32Array.from(ids, (_, at) => at - 1)
    const rankAt = (at: number) => (next[at]! < 0 ? NONE : this.#ranks.get(ids[at]!, ids[next[at]!]!))

    const heap = new MinHeap(count)
    const offer = (at: number) => {
      const rank = rankAt(at)
      if (rank >= 0) heap.push(rank * POSITIONS + at)
    }
    for (let at = 0; at + 1 < count; at++) offer(at)
    while (heap.size > 0) {
      const key = heap.pop()
      const rank = Math.floor(key / POSITIONS)
      const at = key - rank * POSITIONS
      // One of the two has been merged with another since.
      if (rankAt(at) !== rank) continue
      const right = next[at]!
      ids[at] = this.#merged[rank]!
      ids[right] = NONE
      next[at] = next[right]!
      next[right] = NONE
      if (next[at]! >= 0) previous[next[at]!] = at
      offer(at)
      if (previous[at]! >= 0) offer(previous[at]!)
    }

    const tokens: string[] = []
    for (let at = 0; at >= 0 && at < count; at = next[at]!)
      tokens.push(this.#tokens[ids[at]!] ?? characters[at]!)
    return tokens
  }

  #id(path: string, token: string): number {
    const id = this.#ids.get(token)
    if (id !== undefined) return id
    throw new GraspError(
      'MODEL_INVALID',
      `${path}: a merge needs the token ${JSON.stringify(token)}, which its vocabulary lacks`,
    )
  }
}

/** Older files write a merge as one string. */
function sides(path: string, merge: string | readonly [string, string]): readonly [string, string] {
  const [left, right, ...more] = typeof merge === 'string' ? merge.split(' ') : merge
  if (left && right && more.length === 0) return [left, right]
  throw new GraspError('MODEL_INVALID', `${path}: ${JSON.stringify(merge)} is no merge of two tokens`)
}

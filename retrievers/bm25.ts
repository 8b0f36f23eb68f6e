/**
 * Retrieval by shared words: BM25+ (Lv & Zhai 2011, "Lower-bounding term frequency normalization") over one
 * user's posts, computed by MiniSearch:
 *
 *     score = Σ over query words of ln(1 + (N − n + ½)/(n + ½)) · (d + f·(k + 1) / (f + k·(1 − b + b·L/L̄)))
 *
 * N posts, n of them with the word, f its count in the post, L the post's count of *distinct* words and L̄
 * the mean of L (MiniSearch's notion of length). MiniSearch also multiplies each score by the number of
 * query words matched, which is no part of BM25; that factor is taken out again.
 */
import { createHash } from 'node:crypto'
import MiniSearch from 'minisearch'
import { GraspError } from '../errors/grasp-error.ts'
import type { Retriever } from './port.ts'
import { rank } from './rank.ts'
import { words } from './words.ts'

export interface Bm25Options {
  /** Term-frequency saturation. */
  readonly k?: number
  /** Length normalisation, 0 (none) to 1 (full). */
  readonly b?: number
  /** Floor for a match in a long post. */
  readonly d?: number
}

export function createBm25Retriever({ k = 1.2, b = 0.7, d = 0.5 }: Bm25Options = {}): Retriever {
  if (!(k >= 0 && b >= 0 && b <= 1 && d >= 0)) {
    throw new GraspError(
      'CONFIG_INVALID',
      `retriever bm25: k and d must be 0 or more and b from 0 to 1, got k ${k}, b ${b}, d ${d}`,
    )
  }
  const identity = { kind: 'bm25', version: 1, k, b, d }
  return {
    hash: createHash('sha256').update(JSON.stringify(identity)).digest('hex'),
    async retrieve({ question }, profile, topK) {
      const asked = new Set(words(question))
      const index = new MiniSearch<{ id: number; text: string }>({
        fields: ['text'],
        tokenize: words,
        // The index serves one question, so it holds that question's words only: smaller, and quicker to build.
        processTerm: term => (asked.has(term) ? term : null),
        searchOptions: { bm25: { k, b, d }, prefix: false, fuzzy: false, combineWith: 'OR' },
      })
      index.addAll(profile.map(({ text }, id) => ({ id, text })))
      const scores = new Float64Array(profile.length)
      for (const { id, score, queryTerms } of index.search(question)) scores[id] = score / queryTerms.length
      return rank(profile, scores, topK)
    },
    async close() {},
  }
}

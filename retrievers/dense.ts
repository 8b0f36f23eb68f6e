/**
 * Retrieval by meaning: the dot product of the question's embedding and each post's (Contriever's protocol
 * with mean pooling and no normalisation; BGE's and E5's with theirs and prefixes).
 */
import { createHash } from 'node:crypto'
import { GraspError } from '../errors/grasp-error.ts'
import type { EmbedderOptions } from './embedder.ts'
import { loadEmbedder } from './embedder.ts'
import { EmbeddingCache } from './embedding-cache.ts'
import type { Retriever } from './port.ts'
import { rank } from './rank.ts'

export interface DenseOptions extends EmbedderOptions {
  /** Put before the question, as the model was trained ("query: " for E5). */
  readonly queryPrefix?: string
  /** Put before each post ("passage: " for E5). */
  readonly passagePrefix?: string
  /** Embeddings of posts and questions kept in memory. */
  readonly cacheBytes?: number
}

/** Loads the model. Throws RETRIEVER_FAILED, saying which file is missing. */
export async function loadDenseRetriever(options: DenseOptions): Promise<Retriever> {
  const { queryPrefix = '', passagePrefix = '', cacheBytes = 256 * 2 ** 20 } = options
  const embedder = await loadEmbedder(options)
  const cache = new EmbeddingCache(cacheBytes)
  const identity = { kind: 'dense', version: 1, embedder: embedder.hash, queryPrefix, passagePrefix }

  const embed = async (texts: readonly string[]): Promise<Float32Array[]> => {
    // Held here and not only in the cache, which may be smaller than one profile.
    const vectors = new Map<string, Float32Array>()
    const missing = new Set<string>()
    for (const text of texts) {
      const vector = cache.get(text)
      if (vector) vectors.set(text, vector)
      else missing.add(text)
    }
    const wanted = [...missing]
    for (const [index, vector] of (await embedder.embed(wanted)).entries()) {
      vectors.set(wanted[index]!, vector)
      cache.set(wanted[index]!, vector)
    }
    return texts.map(text => vectors.get(text)!)
  }

  // One question at a time: the model uses every core anyway, and a post that two waiting questions share is
  // embedded once.
  let last: Promise<unknown> = Promise.resolve()
  let closed: Promise<void> | undefined
  return {
    hash: createHash('sha256').update(JSON.stringify(identity)).digest('hex'),
    async retrieve({ question }, profile, topK) {
      if (closed) throw new GraspError('RETRIEVER_FAILED', 'the retriever is closed')
      if (profile.length === 0) return rank(profile, [], topK)
      const turn = last.then(() =>
        embed([queryPrefix + question, ...profile.map(({ text }) => passagePrefix + text)]),
      )
      last = turn.catch(() => {})
      const [query, ...posts] = await turn
      return rank(
        profile,
        posts.map(post => dot(query!, post)),
        topK,
      )
    },
    close() {
      closed ??= last.then(() => embedder.close())
      return closed
    },
  }
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!
  return sum
}

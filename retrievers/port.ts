/** The retriever port: which of a user's posts go into the context of a question. */
import type { Passage, Post, Question } from '../schemas/types.ts'

export interface Retriever {
  /** Hash of the kind, its settings and, where it has one, its model: equal hashes retrieve alike. */
  readonly hash: string
  /**
   * The `topK` best posts, best first; the whole profile where it is shorter. `profile` is in the order of
   * writing: of posts that score alike the later one comes first. Throws RETRIEVER_FAILED.
   */
  retrieve(
    question: Pick<Question, 'question' | 'narrative'>,
    profile: readonly Post[],
    topK: number,
  ): Promise<Passage[]>
  close(): Promise<void>
}

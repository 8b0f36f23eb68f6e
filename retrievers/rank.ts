/** From scores to passages: the one place that says how ties are broken. */
import { GraspError } from '../errors/grasp-error.ts'
import type { Passage, Post } from '../schemas/types.ts'

/** The best `topK` posts, best first; of equal scores the later post first. `scores` is parallel to `profile`. */
export function rank(profile: readonly Post[], scores: ArrayLike<number>, topK: number): Passage[] {
  if (!Number.isInteger(topK) || topK < 0) {
    throw new GraspError('RETRIEVER_FAILED', `topK must be a whole number from 0, got ${topK}`)
  }
  return profile
    .map((_, index) => index)
    .sort((a, b) => scores[b]! - scores[a]! || b - a)
    .slice(0, topK)
    .map(index => ({ id: profile[index]!.id, text: profile[index]!.text, score: scores[index]! }))
}

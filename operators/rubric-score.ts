import type { Verdict } from '../schemas/types.ts'

/**
 * The rubric score of a response: s(y, E) = 1/(2m) · Σ_i r(y, e_i), with r in {0, 1, 2} for each of the m
 * aspects; in [0, 1]. Null when there is no aspect or any verdict is missing: a missing verdict is neither a
 * failure nor a pass.
 */
export function rubricScore(verdicts: readonly Verdict[]): number | null {
  if (verdicts.length === 0) return null
  let sum = 0
  for (const { score } of verdicts) {
    if (score === null) return null
    sum += score
  }
  return sum / (2 * verdicts.length)
}

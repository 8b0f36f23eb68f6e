/** The judge port: what decides how far a response covers one rubric aspect. */
import type { Aspect } from '../schemas/types.ts'

export interface JudgeItem {
  readonly question: string
  readonly narrative: string
  readonly category: string
  readonly aspect: Aspect
  readonly response: string
}

/** 2 covered, 1 touched, 0 absent. A judge that cannot tell says why: never a silent 0, never a pass. */
export type Judgement = { readonly score: 0 | 1 | 2 } | { readonly unscored: string }

export interface Judge {
  /** Changes with anything that could change a verdict; verdicts of different hashes are not comparable. */
  readonly hash: string
  judge(item: JudgeItem): Promise<Judgement>
}

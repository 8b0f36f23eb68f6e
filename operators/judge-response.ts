import type { Judge } from '../judges/port.ts'
import type { Context, Verdict } from '../schemas/types.ts'

/** One verdict for each aspect, in the order of the aspects. Calls run side by side; the judge limits itself. */
export function judgeResponse(judge: Judge, context: Context, response: string): Promise<Verdict[]> {
  const { question, narrative, category } = context
  return Promise.all(
    context.aspects.map(async aspect => {
      const verdict = await judge.judge({ question, narrative, category, aspect, response })
      return 'score' in verdict
        ? { aspect: aspect.aspect, score: verdict.score, unscored: null }
        : { aspect: aspect.aspect, score: null, unscored: verdict.unscored }
    }),
  )
}

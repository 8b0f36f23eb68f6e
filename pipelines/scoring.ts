import { score } from '../operators/score.ts'
import type { PolicyContext } from './context.ts'
import { runStage } from './stage.ts'

export function scoring(context: PolicyContext) {
  const { config, engine, info, policies } = context
  const { encoding, dtype, k, sliceBytes } = config.scoring
  return runStage(context, 'scoring', 'rollouts', {
    work: flow => flow.deliveries$.pipe(score({ engine, info, encoding, dtype, k, sliceBytes, policies })),
    atLeast: config.training.batch * (config.rollout.lag + 1),
    seals: ['slices'],
  })
}

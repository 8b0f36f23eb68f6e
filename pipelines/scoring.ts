import { score } from '../operators/score.ts'
import type { PolicyContext } from './context.ts'
import { runStage } from './stage.ts'

export function scoring(context: PolicyContext) {
  const { config, engine, info, policies } = context
  const { encoding, dtype, k, sliceBytes } = config.scoring
  const { lag } = config.rollout
  const options = { engine, info, encoding, dtype, k, sliceBytes, lag, policies }
  return runStage(context, 'scoring', 'rollouts', {
    work: flow => flow.deliveries$.pipe(score(options)),
    atLeast: config.training.batch * (lag + 1),
    seals: ['slices'],
  })
}

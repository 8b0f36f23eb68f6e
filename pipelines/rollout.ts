import { rollout } from '../operators/rollout.ts'
import { type PolicyContext, samplingOptions } from './context.ts'
import { runStage } from './stage.ts'

export function rolloutStage(context: PolicyContext) {
  const { config, engine, info, prompt, policies } = context
  const { lag } = config.rollout
  const sampling = samplingOptions(context, 'rollout')
  return runStage(context, 'rollout', 'instances', {
    work: flow => flow.deliveries$.pipe(rollout({ engine, info, prompt, sampling, lag, policies })),
    atLeastEach: config.training.batch,
    seals: ['rollouts'],
  })
}

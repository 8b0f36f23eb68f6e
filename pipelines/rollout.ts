import { rollout } from '../operators/rollout.ts'
import { type RunContext, samplingOptions } from './context.ts'
import { nextBatch } from './next-batch.ts'
import { runStage } from './stage.ts'

export async function rolloutStage(context: RunContext) {
  const { config, engine, info, prompt, policies } = context
  const { batch } = config.training
  const sampling = samplingOptions(context, 'rollout')
  const firstBatch = await nextBatch(context.log)
  return runStage(context, 'rollout', 'instances', {
    operator: rollout({
      engine,
      info,
      prompt,
      sampling,
      batch,
      lag: config.rollout.lag,
      firstBatch,
      policies,
    }),
    atLeast: batch,
    seals: ['rollouts'],
  })
}

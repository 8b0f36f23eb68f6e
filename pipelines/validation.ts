import { validate } from '../operators/validate.ts'
import { type JudgedContext, samplingOptions } from './context.ts'
import { runStage } from './stage.ts'

export function validation(context: JudgedContext) {
  const { config, engine, info, prompt, judge } = context
  const { tau, batch } = config.validation
  const sampling = samplingOptions(context, 'validation')
  return runStage(context, 'validation', 'contexts', {
    work: flow => flow.records$.pipe(validate({ engine, info, prompt, judge, sampling, tau, batch })),
    atLeast: batch,
    seals: ['validations'],
  })
}

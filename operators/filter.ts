import { map } from 'rxjs'
import { output } from '../bus/port.ts'
import type { StageOperator } from './stage.ts'

/** validations → instances: those with s_T ≥ τ. The rejected stay visible in `validations`. */
export function filter(): StageOperator<'validations'> {
  return map(record => {
    const { context, score, tau, accepted } = record.value
    const outputs =
      accepted && score !== null ? [output('instances', context.id, { context, score, tau, epoch: 0 })] : []
    return { consumed: [record], outputs }
  })
}

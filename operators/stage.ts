/**
 * What a stage's operator is: it takes deliveries and gives, for each group of deliveries that it has
 * finished with, the records to write. The pipeline commits both together, in order.
 */
import type { OperatorFunction } from 'rxjs'
import type { LogRecord, Output, Place } from '../bus/port.ts'
import type { Topic } from '../schemas/types.ts'

export interface Finished {
  /** The deliveries that are done with. */
  readonly consumed: readonly Place[]
  readonly outputs: readonly Output[]
}

export type StageOperator<T extends Topic> = OperatorFunction<LogRecord<T>, Finished>

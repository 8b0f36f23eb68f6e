/**
 * What a stage's operator is: it takes deliveries and gives, for each group of deliveries that it has
 * finished with, the records to write. The pipeline commits both together, in order.
 */
import type { OperatorFunction } from 'rxjs'
import type { Finished } from '../bus/in-flight.ts'
import type { LogRecord } from '../bus/port.ts'
import type { Topic } from '../schemas/types.ts'

export type { Finished }

export type StageOperator<T extends Topic> = OperatorFunction<LogRecord<T>, Finished>

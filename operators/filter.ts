import { concat, concatMap, defer, type OperatorFunction, of } from 'rxjs'
import { type LogRecord, type Output, output, type Place } from '../bus/port.ts'
import type { Instance } from '../schemas/types.ts'
import { batchKey } from './batch-key.ts'
import type { Finished } from './stage.ts'

export interface FilterOptions {
  /** Instances of one update. */
  readonly batch: number
  /** The number of the first batch to form; asked when the first record is there, so that all before it is too. */
  readonly firstBatch: () => Promise<number>
  /** Gives back credits: rejected validations pile up uncommitted while a batch fills, but hold nothing. */
  readonly release: (places: readonly Place[]) => void
}

/**
 * validations → instances: those with s_T ≥ τ, in batches. The batches are numbered here, by the one stage that
 * sees all instances in order, so that rollout and scoring can be shared by any number of workers. The rejected
 * stay visible in `validations`.
 */
export function filter(options: FilterOptions): OperatorFunction<LogRecord<'validations'>, Finished> {
  const { batch: size, release } = options
  return source => {
    let number: number | undefined
    let filling: LogRecord<'validations'>[] = []
    const flush = (): Finished[] => {
      if (filling.length === 0 || number === undefined) return []
      const instances = filling.map(({ value: { context, score, tau } }) => ({
        context,
        score: score!,
        tau,
        epoch: 0,
      }))
      const finished = { consumed: filling, outputs: numbered(instances, number) }
      number += 1
      filling = []
      return [finished]
    }
    const batches$ = source.pipe(
      concatMap(async (record): Promise<Finished[]> => {
        number ??= await options.firstBatch()
        if (!record.value.accepted || record.value.score === null) {
          release([record])
          return [{ consumed: [record], outputs: [] }]
        }
        filling.push(record)
        return filling.length < size ? [] : flush()
      }),
      concatMap(finished => finished),
    )
    return concat(
      batches$,
      defer(() => of(...flush())),
    )
  }
}

/** The records of one batch. */
export function numbered(instances: readonly Omit<Instance, 'batch'>[], number: number): Output[] {
  const size = instances.length
  return instances.map((instance, index) =>
    output('instances', batchKey({ number, size }), { ...instance, batch: { number, index, size } }),
  )
}

import { concat, defer, type Observable, switchMap, tap } from 'rxjs'
import { type Log, output } from '../bus/port.ts'
import { filter } from '../operators/filter.ts'
import type { Instance } from '../schemas/types.ts'
import type { RunContext } from './context.ts'
import { countRecords } from './judged.ts'
import { runStage } from './stage.ts'

/** validations → instances, and for each further epoch the same instances again, in the same order. */
export function filtering(context: RunContext): Observable<unknown> {
  const { log, config, progress } = context
  const { epochs } = config.training
  const seals = epochs === 1 ? (['instances'] as const) : []
  const filtered$ = defer(async () => ({
    seen: await countRecords(log, 'validations', 'filtering'),
    kept: await countRecords(log, 'instances'),
  })).pipe(
    switchMap(counts =>
      runStage(context, 'filtering', 'validations', { operator: filter(), seals }).pipe(
        tap(({ finished, places }) => {
          counts.seen += finished.length
          counts.kept += places.filter(({ topic }) => topic === 'instances').length
          progress({ kind: 'validation', ...counts })
        }),
      ),
    ),
  )
  if (epochs === 1) return filtered$
  return concat(
    filtered$,
    defer(() => appendEpochs(log, epochs)),
  )
}

async function appendEpochs(log: Log, epochs: number): Promise<void> {
  const first: Instance[] = []
  const present = new Set<string>()
  for await (const { value } of log.scan('instances')) {
    if (value === undefined) continue
    if (value.epoch === 0) first.push(value)
    present.add(`${value.epoch} ${value.context.id}`)
  }
  for (let epoch = 1; epoch < epochs; epoch++) {
    const missing = first.filter(({ context }) => !present.has(`${epoch} ${context.id}`))
    const outputs = missing.map(instance => output('instances', instance.context.id, { ...instance, epoch }))
    if (outputs.length > 0) await log.append(outputs)
  }
  await log.seal(['instances'])
}

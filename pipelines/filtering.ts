import { concat, defer, EMPTY, type Observable, switchMap, tap } from 'rxjs'
import { filter, numbered } from '../operators/filter.ts'
import type { Instance } from '../schemas/types.ts'
import type { StageContext } from './context.ts'
import { countKept, countRecords } from './judged.ts'
import { nextBatch } from './next-batch.ts'
import { runStage } from './stage.ts'

/** validations → instances in batches, and for each further epoch the same instances again, in the same order. */
export function filtering(context: StageContext): Observable<unknown> {
  const { log, config, progress } = context
  const { epochs, batch } = config.training
  const filtered$ = defer(async () => {
    const seen = await countRecords(log, 'validations', 'filtering')
    // What is seen again is not counted before.
    return { seen, kept: Math.min(seen, await countKept(log)) }
  }).pipe(
    switchMap(counts =>
      runStage(context, 'filtering', 'validations', {
        work: flow =>
          flow.records$.pipe(filter({ batch, firstBatch: () => nextBatch(log), release: flow.release })),
        atLeast: batch,
        seals: epochs === 1 ? ['instances'] : [],
      }).pipe(
        tap(({ finished, places }) => {
          for (const { consumed } of finished) counts.seen += consumed.length
          counts.kept += places.filter(({ topic }) => topic === 'instances').length
          progress({ kind: 'validation', ...counts })
        }),
      ),
    ),
  )
  if (epochs === 1) return filtered$
  return concat(
    filtered$,
    defer(() => (context.stopped() ? EMPTY : appendEpochs(context))),
  )
}

/** Up to where the run is to stop; the next one goes on from there. */
async function appendEpochs({ log, config, stopped }: StageContext): Promise<void> {
  const { epochs, batch: size } = config.training
  const first: Instance[] = []
  const next = await nextBatch(log)
  // Where the second epoch begins: also behind a batch of which nothing can be read any more.
  let second = next
  for await (const { value } of log.scan('instances')) {
    if (value?.epoch === 0) first.push(value)
    else if (value !== undefined) second = Math.min(second, value.batch.number)
  }
  first.sort((a, b) => a.batch.number - b.batch.number || a.batch.index - b.batch.index)
  const perEpoch = Math.ceil(first.length / size)
  // A batch is appended whole, so what is there are the batches before the next one.
  for (let number = next; number < second + (epochs - 1) * perEpoch; number++) {
    if (stopped()) return
    const start = ((number - second) % perEpoch) * size
    const epoch = 1 + Math.floor((number - second) / perEpoch)
    const instances = first
      .slice(start, start + size)
      .map(({ batch: _, ...instance }) => ({ ...instance, epoch }))
    await log.append(numbered(instances, number))
  }
  await log.seal(['instances'])
}

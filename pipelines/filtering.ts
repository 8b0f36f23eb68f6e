import { concat, defer, ignoreElements } from 'rxjs'
import { type Log, output } from '../bus/port.ts'
import { filter } from '../operators/filter.ts'
import type { Instance } from '../schemas/types.ts'
import type { RunContext } from './context.ts'
import { runStage } from './stage.ts'

/** validations → instances, and for each further epoch the same instances again, in the same order. */
export function filtering(context: RunContext) {
  const { log, config } = context
  const { epochs } = config.training
  if (epochs === 1)
    return runStage(context, 'filtering', 'validations', { operator: filter(), seals: ['instances'] })
  return concat(
    runStage(context, 'filtering', 'validations', { operator: filter(), seals: [] }),
    defer(() => appendEpochs(log, epochs)).pipe(ignoreElements()),
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

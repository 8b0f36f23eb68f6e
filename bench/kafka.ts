/**
 * The log on Kafka, measured. Progress goes to standard error, the result to standard output.
 *
 *     node --import tsx bench/kafka.ts [--only loops|backpressure] [--load NAME] [--rounds N] [--records N]
 *         [--seconds N] [--json]
 *
 * loops         a stage's loop against kafkajs alone on the same topics, in turn: with transactions, which is what
 *               the stage does, and without; processor time is that of this process
 * backpressure  a stage ten times slower than what feeds it, over `--records` records of 1 MiB, for at most
 *               `--seconds`: the slower the machine, the longer it takes
 *
 * KAFKA_BROKERS names the brokers; without it one is looked for as the tests do. The topics are removed at the end.
 */
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { findKafka } from '../test/helpers/kafka-broker.ts'
import { type BackpressureResult, measureBackpressure } from './kafka/backpressure.ts'
import { LOADS } from './kafka/loads.ts'
import { type LoopResult, measureLoops } from './kafka/loops.ts'

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'

const { values: flags } = parseArgs({
  options: {
    only: { type: 'string' },
    load: { type: 'string', default: '' },
    rounds: { type: 'string', default: '5' },
    records: { type: 'string', default: '2000' },
    seconds: { type: 'string', default: '330' },
    json: { type: 'boolean', default: false },
  },
})

const begin = performance.now()
const say = (line: string) =>
  process.stderr.write(`${((performance.now() - begin) / 1000).toFixed(1).padStart(6)} s  ${line}\n`)

const found = await findKafka()
if (!found.brokers) throw new Error(found.skip)
const loops: LoopResult[] = []
let backpressure: BackpressureResult | undefined
try {
  if (flags.only !== 'backpressure') {
    for (const load of LOADS) {
      if (load.name.startsWith(flags.load))
        loops.push(await measureLoops(found.brokers, load, Number(flags.rounds), say))
    }
  }
  if (flags.only !== 'loops') {
    backpressure = await measureBackpressure(
      found.brokers,
      { records: Number(flags.records), seconds: Number(flags.seconds) },
      say,
    )
  }
} finally {
  await found.release()
}
const machine = { cores: availableParallelism(), load: loadavg().map(each => Number(each.toFixed(1))) }

if (flags.json) console.log(JSON.stringify({ machine, loops, backpressure }))
else {
  console.log(`${machine.cores} cores, load ${machine.load.join(', ')}`)
  if (loops.length > 0) printLoops()
  if (backpressure) printBackpressure(backpressure)
}

function printLoops(): void {
  const columns = ['stage rec/s', 'kafkajs tx', 'ratio', 'cpu', 'plain', 'ratio', 'cpu']
  console.log(`${'record'.padEnd(20)}${columns.map(column => column.padStart(12)).join('')}`)
  for (const { record, recordsPerSecond, ratio, processorRatio } of loops) {
    const cells = [
      recordsPerSecond.stage.toFixed(0),
      recordsPerSecond.transactional.toFixed(0),
      ratio.transactional.toFixed(2),
      processorRatio.transactional.toFixed(2),
      recordsPerSecond.plain.toFixed(0),
      ratio.plain.toFixed(2),
      processorRatio.plain.toFixed(2),
    ]
    console.log(`${record.padEnd(20)}${cells.map(cell => cell.padStart(12)).join('')}`)
  }
  for (const { record, held, resident } of loops) {
    console.log(`${record}: MiB held after each round ${held.join(' ')}; resident ${resident.join(' ')}`)
  }
}

function printBackpressure(result: BackpressureResult): void {
  const { records, wanted, fedPerSecond, donePerSecond, credits, mostInFlight, mostBehind } = result
  const megabytes = (bytes: number) => (bytes / 2 ** 20).toFixed(1)
  console.log(`backpressure, ${records} of ${wanted} records of 1 MiB`)
  console.log(
    `  fed ${fedPerSecond.toFixed(0)} a second, done ${donePerSecond.toFixed(1)} a second: ` +
      `${(fedPerSecond / donePerSecond).toFixed(1)} times slower, at most ${mostBehind} records behind`,
  )
  console.log(
    `  in flight at most ${mostInFlight.records} of ${credits.records} records, ` +
      `${megabytes(mostInFlight.bytes)} of ${megabytes(credits.bytes)} MiB`,
  )
  console.log(
    `  resident in each quarter ${result.resident.join(' ')} MiB, at most ${result.mostResident}; ` +
      `last quarter over second ${result.growth.toFixed(2)}`,
  )
}

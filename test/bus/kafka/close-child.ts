/**
 * A process that ends while its brokers are away: `close-child.ts BROKERS RUN`. It says on standard output what it
 * did, a line each, begins to write and to close when it reads a line, and must then end by itself.
 */
import { once } from 'node:events'
import { openKafkaLog } from '../../../bus/kafka/log.ts'
import type { Place } from '../../../bus/port.ts'
import { letterOutput, questions, until } from '../samples.ts'

const [brokers, run] = process.argv.slice(2) as [string, string]
const say = (line: string) => process.stdout.write(`${line}\n`)

const timeouts = { session: 6_000, close: 1_000 }
const log = await openKafkaLog({ brokers: brokers.split(','), run, prefix: 'test', timeouts })
await log.append(questions(20))
const credits = { records: 10, bytes: 1 << 20 }
const held: Place[] = []
log.read('questions', { group: 'g', credits, until: 'never' }).subscribe({
  next: record => held.push(record),
  error: error => say(`reading ended: ${error.code}`),
})
log.read('contexts', { group: 'h', credits, until: 'sealed' }).subscribe({
  error: error => say(`waiting ended: ${error.code}`),
})
const commit = () => {
  const { partition, offset } = held.shift()!
  const positions = [{ topic: 'questions' as const, partition, offset: offset + 1 }]
  return log.commit({ group: 'g', outputs: [letterOutput('x', 10)], positions })
}
await until(() => held.length === 10)
// So that the producers are there.
await commit()
await log.append([letterOutput('y', 10)])
say('ready')
await once(process.stdin, 'data')
process.stdin.destroy()
const told = (what: string, work: Promise<unknown>) =>
  work.then(
    () => say(`${what}: done`),
    error => say(`${what}: ${error.code}`),
  )
const all = [
  told('commit', commit()),
  told('append', log.append([letterOutput('z', 10)])),
  told('ends', log.topics()),
]
await log.close()
say('closed')
await Promise.all(all)
say('settled')

/**
 * A stage in a process of its own, to be killed or stopped: `child.ts BROKERS RUN MODE`. It says on standard output
 * what it did, a line each.
 *   hang    writes the outputs of its first commit and hangs just before the commit itself
 *   slow    commits only when it reads `go` on standard input, and says how that went
 */
import { once } from 'node:events'
import { Kafka } from 'kafkajs'
import { openKafkaLog } from '../../../bus/kafka/log.ts'
import { letterOutput } from '../samples.ts'

const [brokers, run, mode] = process.argv.slice(2) as [string, string, 'hang' | 'slow']
const say = (line: string) => process.stdout.write(`${line}\n`)

if (mode === 'hang') {
  const make = Kafka.prototype.producer
  Kafka.prototype.producer = function (options) {
    const producer = make.call(this, options)
    const begin = producer.transaction
    producer.transaction = async () => {
      const transaction = await begin()
      transaction.commit = () => {
        say('written')
        return new Promise(() => {})
      }
      return transaction
    }
    return producer
  }
}

const timeouts = { session: 6_000, transaction: 4_000 }
const log = await openKafkaLog({ brokers: brokers.split(','), run, prefix: 'test', timeouts })
const credits = { records: 10, bytes: 1 << 20 }
const onLost = (partitions: readonly number[]) => say(`lost ${partitions}`)
log.read('questions', { group: 'g', credits, until: 'never', onLost }).subscribe({
  next: async record => {
    say(`read ${record.offset}`)
    if (mode === 'slow') await once(process.stdin, 'data')
    const positions = [
      { topic: 'questions' as const, partition: record.partition, offset: record.offset + 1 },
    ]
    log.commit({ group: 'g', outputs: [letterOutput('of the child', 10)], positions }).then(
      () => say('committed'),
      error => say(`refused ${error.code}`),
    )
  },
  error: error => say(`failed ${error.code}`),
})

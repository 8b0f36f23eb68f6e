/** The end of a process whose brokers are away. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { lacksOwnKafka } from '../../helpers/kafka-broker.ts'
import { KafkaProcess } from '../../helpers/kafka-process.ts'
import { until } from '../samples.ts'

const skip = (await lacksOwnKafka()) ?? false

describe('Kafka: closing', { skip }, () => {
  let broker: KafkaProcess
  before(async () => {
    broker = await KafkaProcess.create()
    await broker.start()
  })
  after(() => broker.stop())

  for (const away of [true, false]) {
    it(`settles everything and leaves nothing that would keep the process, brokers ${away ? 'away' : 'there'}`, async () => {
      const script = fileURLToPath(new URL('./close-child.ts', import.meta.url))
      const args = ['--import', 'tsx', script, broker.brokers.join(','), away ? 'away' : 'there']
      const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
      const exit = once(child, 'exit')
      let said = ''
      child.stdout.on('data', data => {
        said += data
      })
      try {
        await until(() => said.includes('ready') || child.exitCode !== null)
        if (away) await broker.kill()
        child.stdin.write('go\n')
        const ended = new Promise<'late'>(resolve => setTimeout(() => resolve('late'), 60_000).unref())
        const outcome = await Promise.race([exit, ended])
        assert.deepEqual(outcome, [0, null], said)
        const expected = away
          ? ['commit: LOG_UNAVAILABLE', 'append: LOG_UNAVAILABLE']
          : ['commit: done', 'append: done']
        for (const line of [
          'reading ended: LOG_UNAVAILABLE',
          'waiting ended: LOG_UNAVAILABLE',
          'closed',
          'settled',
          ...expected,
        ])
          assert.ok(said.includes(`${line}\n`), `${line} in ${said}`)
      } finally {
        child.kill('SIGKILL')
        if (away) await broker.start()
      }
    })
  }
})

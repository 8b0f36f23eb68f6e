/** A stage slower than what fills its topic: no more is in flight than the credits say, and no more in memory. */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { concatMap, tap } from 'rxjs'
import { openFlow } from '../../bus/flow.ts'
import type { Log } from '../../bus/port.ts'
import { findKafka } from '../helpers/kafka-broker.ts'
import type { LogHarness, MakeHarness } from './conformance.ts'
import { makeKafkaHarness } from './kafka/harness.ts'
import { makeLmdbHarness } from './lmdb/harness.ts'
import { letterOutput } from './samples.ts'

const RECORDS = 200
const BYTES = 256 << 10
const CREDITS = { records: 12, bytes: 8 * (BYTES + 1024) }
/** In flight, fetched ahead, and on the way to be garbage: far from the 50 MiB that go through. */
const MOST_BYTES = 16 << 20

const turn = () => new Promise(resolve => setImmediate(resolve))

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

/** Bytes that records take: their memory lies outside of the heap. */
async function heldBytes(): Promise<number> {
  for (let i = 0; i < 2; i++) {
    gc()
    await turn()
  }
  return process.memoryUsage().arrayBuffers
}

function describeBackpressure(name: string, make: MakeHarness): void {
  describe(`${name}: a slow stage`, () => {
    let harness: LogHarness
    let log: Log
    beforeEach(async () => {
      harness = await make({ partitions: { deadletters: 3 } })
      log = await harness.open()
    })
    afterEach(async () => {
      await log.close()
      await harness.remove()
    })

    it('never has more in flight than its credits, nor in memory', async () => {
      const before = await heldBytes()
      for (let i = 0; i < RECORDS; i += 20) {
        await log.append(Array.from({ length: 20 }, (_, j) => letterOutput(`key ${i + j}`, BYTES)))
      }
      const inFlight = { records: 0, bytes: 0 }
      const most = { records: 0, bytes: 0 }
      let mostHeld = 0
      let count = 0
      const flow = openFlow(log, 'deadletters', { stage: 's', group: 'g', credits: CREDITS, until: 'end' })
      const stage$ = flow.records$.pipe(
        tap(({ value }) => {
          inFlight.records++
          inFlight.bytes += value.payload.length
          // A commit gives credits back a moment before it tells that it is in.
          setImmediate(() => {
            most.records = Math.max(most.records, inFlight.records)
            most.bytes = Math.max(most.bytes, inFlight.bytes)
          })
        }),
        concatMap(async record => {
          await turn()
          if (++count % 50 === 0) mostHeld = Math.max(mostHeld, (await heldBytes()) - before)
          return { consumed: [record], outputs: [] }
        }),
        flow.commit(),
      )
      await stage$.forEach(({ finished }) => {
        inFlight.records -= finished.length
        inFlight.bytes -= finished.length * BYTES
      })
      assert.equal(count, RECORDS)
      assert.deepEqual(inFlight, { records: 0, bytes: 0 })
      assert.ok(most.records <= CREDITS.records, `${most.records} records were in flight`)
      assert.ok(most.bytes <= CREDITS.bytes, `${most.bytes} bytes were in flight`)
      assert.ok(most.bytes > CREDITS.bytes / 2, 'the credits are used')
      assert.ok(mostHeld < MOST_BYTES, `${mostHeld} bytes were held`)
    })
  })
}

describeBackpressure('LMDB', makeLmdbHarness)

const kafka = await findKafka()
if (kafka.brokers) {
  after(() => kafka.release())
  describeBackpressure('Kafka', makeKafkaHarness(kafka.brokers))
} else {
  describe('Kafka: a slow stage', () => {
    it('never has more in flight than its credits, nor in memory', { skip: kafka.skip }, () => {})
  })
}

/**
 * What every log must do, whichever it is. An adapter's test calls `describeLog` with a way to make an empty
 * log, to open it again, and to write bytes that are no record.
 */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { bufferCount, concatMap, map, mergeMap, type Observable, take } from 'rxjs'
import { openFlow } from '../../bus/flow.ts'
import {
  type Credits,
  type Delivery,
  type Log,
  type LogRecord,
  type Output,
  output,
  type Place,
  type ReadOptions,
} from '../../bus/port.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import {
  all,
  gather,
  letter,
  letterOutput,
  question,
  questionOutput,
  questions,
  settle,
  until,
} from './samples.ts'

export interface LogHarness {
  /** Opens the log, again after a close. */
  open(): Promise<Log>
  /** Writes bytes as they are. */
  appendRaw(log: Log, topic: Topic, key: string, payload: Uint8Array): Promise<void>
  remove(): Promise<void>
}

export type MakeHarness = (options: { partitions?: Partial<Record<Topic, number>> }) => Promise<LogHarness>

const PLENTY: Credits = { records: 100_000, bytes: 1 << 30 }

export function describeLog(name: string, make: MakeHarness): void {
  describe(`${name}: the log port`, () => {
    let harness: LogHarness
    let log: Log

    beforeEach(async () => {
      harness = await make({ partitions: { questions: 3 } })
      log = await harness.open()
    })

    afterEach(async () => {
      await log.close()
      await harness.remove()
    })

    const reopen = async () => {
      await log.close()
      log = await harness.open()
    }
    const read = <T extends Topic>(topic: T, options: Partial<ReadOptions> = {}): Observable<Delivery<T>> =>
      log.read(topic, { group: 'g', credits: PLENTY, until: 'end', ...options })
    const commitPast = (place: Place, group = 'g') =>
      log.commit({ group, outputs: [], positions: [{ ...pick(place), offset: place.offset + 1 }] })
    const endsOf = async (topic: Topic) => (await log.topics()).find(info => info.topic === topic)!.ends

    describe('append', () => {
      it('tells where records went, and puts equal keys into one partition', async () => {
        const places = await log.append(questions(60, i => `user ${i % 7}`))
        const scanned = await gather(log.scan('questions'))
        const at = new Map(scanned.map(record => [`${record.partition}/${record.offset}`, record.value?.id]))
        for (const [i, { topic, partition, offset }] of places.entries()) {
          assert.equal(topic, 'questions')
          assert.equal(at.get(`${partition}/${offset}`), `q${i}`)
        }
        for (let user = 0; user < 7; user++) {
          const partitions = new Set(places.filter((_, i) => i % 7 === user).map(place => place.partition))
          assert.equal(partitions.size, 1)
        }
        assert.ok(new Set(places.map(place => place.partition)).size > 1, 'more than one partition is used')
      })

      it('writes nothing for an empty list', async () => {
        assert.deepEqual(await log.append([]), [])
        assert.deepEqual(await endsOf('questions'), [0, 0, 0])
      })

      it('writes none when one of them is invalid', async () => {
        const bad = output('questions', 'b', { ...question('b'), user: 7 as unknown as string })
        await assert.rejects(log.append([questionOutput('a'), bad]), (error: GraspError) => {
          assert.equal(error.code, 'RECORD_INVALID')
          assert.match(error.message, /questions.*user.*expected string, got 7/)
          return true
        })
        assert.deepEqual(await endsOf('questions'), [0, 0, 0])
      })

      it('keeps records whole and in order under concurrent appends', async () => {
        await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            log.append([questionOutput(`${i}a`, 'k'), questionOutput(`${i}b`, 'k')]),
          ),
        )
        const ids = (await gather(log.scan('questions'))).map(record => record.value!.id)
        assert.equal(ids.length, 40)
        for (let i = 0; i < 40; i += 2) assert.equal(ids[i]!.slice(0, -1), ids[i + 1]!.slice(0, -1))
      })
    })

    describe('append after', () => {
      const after = async (outputs: Output[], ends: readonly number[], to = log) =>
        to.append(outputs, { after: { topic: 'questions', ends } })
      const told = {
        code: 'LOG_UNAVAILABLE',
        message: /another process writes to questions.*Stop one of the two/,
      }
      const ids = async (from = log) => (await gather(from.scan('questions'))).map(({ value }) => value!.id)
      const advance = (ends: number[], places: readonly Place[]) => {
        for (const { topic, partition, offset } of places)
          if (topic === 'questions') ends[partition] = offset + 1
      }

      it('writes where the topic ends as expected, and nothing at all where it does not', async () => {
        const ends = [0, 0, 0]
        advance(ends, await after([...questions(5), letterOutput('a', 5)], ends))
        // What a commit leaves between the records is no record.
        advance(
          ends,
          await after(
            questions(5, i => `more ${i}`),
            ends,
          ),
        )
        await log.append([questionOutput('other', 'k')])
        await assert.rejects(after([questionOutput('late'), letterOutput('b', 5)], ends), told)
        await assert.rejects(after([], ends), told)
        assert.equal((await ids()).length, 11)
        assert.equal((await gather(log.scan('deadletters'))).length, 1)
        await after([questionOutput('next')], await endsOf('questions'))
        assert.equal((await ids()).length, 12)
      })

      for (const where of ['in one process', 'in two processes'] as const) {
        it(`lets one of two writers through, ${where}`, async () => {
          const other = where === 'in one process' ? log : await harness.open()
          const write = async (name: string, to: Log) => {
            const ends = [0, 0, 0]
            for (let i = 0; i < 12; i++) {
              const outputs = [0, 1, 2].map(j => questionOutput(`${name} ${i} ${j}`, `key ${i} ${j}`))
              advance(ends, await after(outputs, ends, to))
            }
          }
          try {
            const outcomes = await Promise.allSettled([write('one', log), write('two', other)])
            const refused = outcomes.flatMap(each => (each.status === 'rejected' ? [each.reason] : []))
            assert.equal(refused.length, 1)
            assert.equal(refused[0].code, 'LOG_UNAVAILABLE')
            assert.match(refused[0].message, told.message)
            const winner = outcomes[0]!.status === 'fulfilled' ? 'one' : 'two'
            // Who wrote sees it at once, others a moment later.
            const written = await ids(winner === 'one' ? log : other)
            assert.equal(written.length, 36)
            assert.ok(written.every(id => id.startsWith(winner)))
          } finally {
            await other.close()
          }
        })
      }
    })

    describe('read', () => {
      it('keeps the order within each partition and loses nothing', async () => {
        await log.append(questions(300))
        const records = await all(read('questions'))
        assert.equal(records.length, 300)
        assert.equal(new Set(records.map(record => record.value!.id)).size, 300)
        assertAscending(records)
      })

      it('takes partitions in turn', async () => {
        await log.append(questions(90))
        const first = await all(read('questions').pipe(take(9)))
        assert.equal(new Set(first.map(record => record.partition)).size, 3)
      })

      it('gives key, timestamp, value and the encoded record', async () => {
        const before = Date.now()
        await log.append([questionOutput('q', 'the key')])
        const [record] = await all(read('questions'))
        assert.equal(record!.key, 'the key')
        assert.deepEqual(record!.value, question('q'))
        assert.ok(record!.timestamp >= before && record!.timestamp <= Date.now())
        assert.deepEqual([...record!.payload.subarray(0, 2)], [0xc3, 0x01])
      })

      it('end: completes at the ends as they were on subscription', async () => {
        await log.append(questions(5))
        const work = async (record: Delivery<'questions'>) => {
          await log.append([questionOutput('later')])
          await commitPast(record)
          return record.value!.id
        }
        const credits = { records: 1, bytes: 1 << 20 }
        const ids = await all(read('questions', { credits }).pipe(mergeMap(work)))
        assert.deepEqual(ids.sort(), ['q0', 'q1', 'q2', 'q3', 'q4'])
      })

      it('end: completes on an empty topic', async () => {
        assert.deepEqual(await all(read('questions')), [])
      })

      it('never: goes on with what is appended, until unsubscribed', async () => {
        const ids: string[] = []
        const subscription = read('questions', { until: 'never' }).subscribe(record =>
          ids.push(record.value!.id),
        )
        await log.append([questionOutput('a', 'k')])
        await until(() => ids.length === 1)
        await log.seal(['questions'])
        await log.append([questionOutput('b', 'k')])
        await until(() => ids.length === 2)
        subscription.unsubscribe()
        await log.append([questionOutput('c', 'k')])
        await settle()
        assert.deepEqual(ids, ['a', 'b'])
      })

      it('stops at once when unsubscribed from within', async () => {
        await log.append(questions(50))
        const seen = await all(read('questions').pipe(take(3)))
        await settle()
        assert.equal(seen.length, 3)
      })

      it('starts at given offsets instead of the committed ones', async () => {
        const places = await log.append(questions(30))
        const of = (partition: number) => places.filter(place => place.partition === partition)
        const from = new Map([
          [0, of(0).at(-1)!.offset],
          [2, (await endsOf('questions'))[2]!],
        ])
        await log.seek('questions', 'g', [0, 1, 0])
        const records = await all(read('questions', { from }))
        assert.equal(records.filter(record => record.partition === 0).length, 1)
        assert.equal(records.filter(record => record.partition === 1).length, of(1).length - 1)
        assert.equal(records.filter(record => record.partition === 2).length, 0)
      })

      it('reports a start beyond the end once, as LOG_MISMATCH', async () => {
        await log.append(questions(3, () => 'k'))
        let errors = 0
        const error = await new Promise<unknown>(resolve =>
          read('questions', { from: new Map([[0, 99]]), until: 'never' }).subscribe({
            error: fault => {
              errors++
              resolve(fault)
            },
          }),
        )
        await settle()
        assert.equal(errors, 1)
        assert.equal((error as GraspError).code, 'LOG_MISMATCH')
      })

      it('carries records of 1 MiB', async () => {
        const sent = Array.from({ length: 4 }, (_, i) => letterOutput(`k${i}`, 1 << 20))
        await log.append(sent)
        const records = await all(read('deadletters'))
        for (const [i, record] of records.entries()) assert.deepEqual(record.value, sent[i]!.value)
        assert.equal(records.length, 4)
      })

      it('carries keys and text in any script', async () => {
        const keys = ['naïve', 'ключ', '鍵', '🔑🗝️', 'ا'.repeat(300), ' \n\u0000', '']
        await log.append(keys.map(key => output('questions', key, question(key, `${key}?`))))
        const records = await all(read('questions'))
        assert.deepEqual(new Set(records.map(record => record.key)), new Set(keys))
        for (const { key, value } of records) assert.equal(value!.question, `${key}?`)
      })

      it('gives bytes that stay as they are', async () => {
        await log.append([letterOutput('a', 50_000), letterOutput('b', 50_000)])
        const [first] = await all(read('deadletters'))
        const payload = Uint8Array.from(first!.payload)
        const bytes = Uint8Array.from(first!.value!.payload)
        await log.append(Array.from({ length: 20 }, (_, i) => letterOutput(`${i}`, 50_000)))
        await gather(log.scan('deadletters'))
        assert.deepEqual(first!.payload, payload)
        assert.deepEqual(first!.value!.payload, bytes)
        assert.equal(first!.value!.payload.byteOffset % 8, 0, 'the bytes can be viewed as numbers')
      })
    })

    describe('credits', () => {
      it('never lets more records out than credited, and resumes at half', async () => {
        await log.append(questions(40, () => 'k'))
        const held: Place[] = []
        const subscription = read('questions', { credits: { records: 8, bytes: 1 << 30 } }).subscribe(
          record => {
            held.push(record)
          },
        )
        await until(() => held.length === 8)
        await settle()
        assert.equal(held.length, 8)
        for (const count of [1, 2, 3]) {
          await commitPast(held[count - 1]!)
          await settle()
          assert.equal(held.length, 8, `${count} of 8 given back`)
        }
        await commitPast(held[3]!)
        await until(() => held.length === 12)
        await settle()
        assert.equal(held.length, 12)
        subscription.unsubscribe()
      })

      it('never lets more bytes out than credited', async () => {
        await log.append(Array.from({ length: 30 }, (_, i) => letterOutput(`${i}`, 10_000 + 500 * i)))
        let bytes = 0
        let most = 0
        let count = 0
        const work = async (record: Delivery<'deadletters'>) => {
          bytes += record.payload.length
          most = Math.max(most, bytes)
          count++
          await settle()
          bytes -= record.payload.length
          await commitPast(record)
        }
        await all(read('deadletters', { credits: { records: 100, bytes: 60_000 } }).pipe(mergeMap(work)))
        assert.equal(count, 30)
        assert.ok(most <= 60_000, `${most} bytes in flight`)
        assert.ok(most > 30_000, 'the credits are used')
      })

      it('lets one record through that is larger than all credits', async () => {
        await log.append([letterOutput('a', 5_000), letterOutput('b', 5_000)])
        const seen: Delivery<'deadletters'>[] = []
        const done = read('deadletters', { credits: { records: 10, bytes: 100 } }).forEach(record => {
          seen.push(record)
        })
        await until(() => seen.length === 1)
        await settle()
        assert.equal(seen.length, 1)
        await commitPast(seen[0]!)
        await done
        assert.equal(seen.length, 2)
      })

      it('of one partition do not keep the records of another out, where each has some of its own', async () => {
        // Much in each partition, so that none of it is out of the way by chance.
        const text = 'x'.repeat(40_000)
        const outputs = Array.from({ length: 36 }, (_, i) =>
          output('questions', `key ${i % 12}`, question(`q${i}`, text)),
        )
        const places = await log.append(outputs)
        const seen: Place[] = []
        const credits = { records: 1, bytes: 1, atLeastEach: 2 }
        const subscription = read('questions', { credits, until: 'never' }).subscribe(record => {
          seen.push(record)
        })
        const of = (partition: number) => seen.filter(place => place.partition === partition)
        await until(() => [0, 1, 2].every(p => of(p).length >= 2))
        await settle()
        assert.deepEqual(
          [0, 1, 2].map(p => of(p).length),
          [2, 2, 2],
        )
        // One partition alone goes on to its end, past all that the others are kept from.
        const count = places.filter(({ partition }) => partition === 2).length
        while (of(2).length < count) {
          const done = of(2).length
          await commitPast(of(2).at(-1)!)
          await until(() => of(2).length > done)
        }
        assert.deepEqual([of(0).length, of(1).length], [2, 2])
        subscription.unsubscribe()
      })

      it('counts each group for itself', async () => {
        await log.append(questions(10, () => 'k'))
        const seen: Place[] = []
        const subscription = read('questions', { credits: { records: 2, bytes: 1 << 30 } }).subscribe(
          record => {
            seen.push(record)
          },
        )
        await until(() => seen.length === 2)
        await commitPast(seen[1]!, 'another group')
        await settle()
        assert.equal(seen.length, 2)
        subscription.unsubscribe()
      })

      it('come back early for records that are released', async () => {
        await log.append(questions(6, () => 'k'))
        const flow = openFlow(log, 'questions', {
          stage: 's',
          group: 'g',
          credits: { records: 2, bytes: 1 << 30 },
          until: 'end',
        })
        let count = 0
        const work = async (record: Delivery<'questions'>) => {
          count++
          await settle()
          flow.release([record])
        }
        await all(flow.deliveries$.pipe(mergeMap(work)))
        assert.equal(count, 6)
        assert.deepEqual(await log.committed('questions', 'g'), [0, 0, 0])
      })
    })

    describe('commit', () => {
      it('makes outputs and positions visible together', async () => {
        await log.append(questions(4, () => 'k'))
        const [first] = await all(read('questions'))
        const { partition } = first!
        const places = await log.commit({
          group: 'g',
          outputs: [letterOutput('out', 10), letterOutput('out', 20)],
          positions: [{ topic: 'questions', partition, offset: 2 }],
        })
        const written = await gather(log.scan('deadletters'))
        assert.deepEqual(places, written.map(pick))
        assert.equal((await log.committed('questions', 'g'))[partition], 2)
      })

      it('does nothing at all when any part is wrong', async () => {
        await log.append(questions(4, () => 'k'))
        const [first] = await all(read('questions'))
        const { partition } = first!
        const good = { topic: 'questions' as const, partition, offset: 2 }
        const invalid = output('deadletters', 'k', { ...letter('k', new Uint8Array()), attempts: 1.5 })
        const attempts = [
          log.commit({ group: 'g', outputs: [letterOutput('o', 9), invalid], positions: [good] }),
          log.commit({
            group: 'g',
            outputs: [letterOutput('o', 9)],
            positions: [good, { ...good, offset: 99 }],
          }),
          log.commit({ group: 'g', outputs: [letterOutput('o', 9)], positions: [{ ...good, partition: 7 }] }),
          log.commit({ group: 'g', outputs: [letterOutput('o', 9)], positions: [{ ...good, offset: -1 }] }),
        ]
        const codes = await Promise.all(
          attempts.map(attempt =>
            attempt.then(
              () => 'committed',
              error => error.code,
            ),
          ),
        )
        assert.deepEqual(codes, ['RECORD_INVALID', 'LOG_MISMATCH', 'LOG_MISMATCH', 'LOG_MISMATCH'])
        assert.deepEqual(await endsOf('deadletters'), [0])
        assert.deepEqual(await log.committed('questions', 'g'), [0, 0, 0])
      })

      it('delivers again what was not committed, after a restart', async () => {
        await log.append(questions(20))
        const before = await all(read('questions'))
        const half = before.slice(0, 10)
        for (const record of half) await commitPast(record)
        await reopen()
        const after = await all(read('questions'))
        const ids = (records: Delivery<'questions'>[]) => records.map(record => record.value!.id).sort()
        assert.deepEqual(ids([...half, ...after]), ids(before))
      })

      it('counts for a reader that starts while it is under way', async () => {
        await log.append(questions(5, () => 'k'))
        const [first] = await all(read('questions'))
        const committing = commitPast({ ...first!, offset: 3 })
        const records = await all(read('questions'))
        await committing
        assert.deepEqual(
          records.map(record => record.value!.id),
          ['q4'],
        )
      })

      it('keeps the positions of groups apart', async () => {
        await log.append(questions(10, () => 'k'))
        const records = await all(read('questions', { group: 'one' }))
        await commitPast(records[6]!, 'one')
        assert.equal((await all(read('questions', { group: 'one' }))).length, 3)
        assert.equal((await all(read('questions', { group: 'two' }))).length, 10)
      })
    })

    describe('names', () => {
      for (const name of ['', 'x'.repeat(201), 'a\0b']) {
        it(`${JSON.stringify(name.slice(0, 5))} of length ${name.length} is refused`, async () => {
          const refused = { code: 'CONFIG_INVALID', message: /expected a name of 1 to 200 characters/ }
          await assert.rejects(log.commit({ group: name, outputs: [], positions: [] }), refused)
          await assert.rejects(log.seek('questions', name, [0, 0, 0]), refused)
          await assert.rejects(log.setNote(name, 'x'), refused)
          await assert.rejects(all(read('questions', { group: name })), refused)
        })
      }

      it('in any script are taken', async () => {
        await log.setNote('заметка 📝', 'ü')
        assert.equal(await log.note('заметка 📝'), 'ü')
        await log.append(questions(1, () => 'k'))
        const [record] = await all(read('questions', { group: 'группа 組'.repeat(20) }))
        await commitPast(record!, 'группа 組'.repeat(20))
        assert.deepEqual(await all(read('questions', { group: 'группа 組'.repeat(20) })), [])
      })
    })

    describe('seek', () => {
      it('sets where a group reads from', async () => {
        await log.append(questions(30))
        const ends = await endsOf('questions')
        await log.seek('questions', 'g', ends)
        assert.deepEqual(await all(read('questions')), [])
        await log.seek('questions', 'g', [0, 0, 0])
        assert.equal((await all(read('questions'))).length, 30)
      })

      it('refuses offsets that do not exist', async () => {
        await log.append(questions(3))
        await assert.rejects(log.seek('questions', 'g', [0, 0]), { code: 'LOG_MISMATCH' })
        await assert.rejects(log.seek('questions', 'g', [0, 0, 1000]), { code: 'LOG_MISMATCH' })
        assert.deepEqual(await log.committed('questions', 'g'), [0, 0, 0])
      })

      it('is refused while anything reads as the group, and says what', async () => {
        await log.append(questions(3))
        const seen: Place[] = []
        const subscriptions = [1, 2].map(() =>
          read('questions', { until: 'never' }).subscribe(record => seen.push(record)),
        )
        await until(() => seen.length > 0)
        assert.ok((await log.workers('g')).length > 0)
        assert.deepEqual(await log.workers('another'), [])
        const refused = { code: 'GROUP_ACTIVE', message: /group g .*stop it first/ }
        await assert.rejects(log.seek('questions', 'g', [0, 0, 0]), refused)
        subscriptions[0]!.unsubscribe()
        await assert.rejects(log.seek('questions', 'g', [0, 0, 0]), refused)
        subscriptions[1]!.unsubscribe()
        await eventually(async () => (await log.workers('g')).length === 0)
        await log.seek('questions', 'g', [0, 0, 0])
      })
    })

    describe('seal', () => {
      it('lets readers complete at the present end', async () => {
        await log.append(questions(10))
        const ids: string[] = []
        let complete = false
        read('questions', { until: 'sealed' }).subscribe({
          next: record => ids.push(record.value!.id),
          complete: () => {
            complete = true
          },
        })
        await until(() => ids.length === 10)
        await settle()
        assert.equal(complete, false)
        await log.seal(['questions'])
        await until(() => complete)
        assert.equal(ids.length, 10)
      })

      it('opens again with the next append, until sealed again', async () => {
        await log.append(questions(3))
        await log.seal(['questions', 'deadletters'])
        await log.append([questionOutput('more')])
        const sealed = async () => (await log.topics()).filter(info => info.sealed).map(info => info.topic)
        assert.deepEqual(await sealed(), ['deadletters'])
        let complete = false
        let count = 0
        read('questions', { until: 'sealed' }).subscribe({
          next: () => count++,
          complete: () => {
            complete = true
          },
        })
        await until(() => count === 4)
        await settle()
        assert.equal(complete, false)
        await log.seal(['questions'])
        await until(() => complete)
        assert.deepEqual(await sealed(), ['deadletters', 'questions'])
      })

      it('is taken back', async () => {
        await log.append(questions(2))
        await log.seal(['questions'])
        await log.unseal(['questions', 'contexts'])
        assert.equal((await log.topics()).find(info => info.topic === 'questions')!.sealed, false)
        let completed = false
        const seen: Place[] = []
        const subscription = read('questions', { until: 'sealed' }).subscribe({
          next: record => seen.push(record),
          complete: () => {
            completed = true
          },
        })
        await until(() => seen.length === 2)
        await settle()
        assert.equal(completed, false)
        await log.seal(['questions'])
        await until(() => completed)
        subscription.unsubscribe()
      })

      it('takes effect together with a commit', async () => {
        const outputs = questions(5)
        await log.commit({ group: 'g', outputs, positions: [], seal: ['questions'] })
        assert.equal((await all(read('questions', { until: 'sealed' }))).length, 5)
      })

      it('completes a reader of an empty topic', async () => {
        await log.seal(['questions'])
        assert.deepEqual(await all(read('questions', { until: 'sealed' })), [])
      })
    })

    describe('scan', () => {
      it('reads from an offset, one partition, at most so many', async () => {
        await log.append(questions(30))
        const whole = await gather(log.scan('questions', { partition: 1 }))
        assert.ok(whole.every(record => record.partition === 1))
        const part = await gather(log.scan('questions', { partition: 1, from: { offset: 2 }, limit: 3 }))
        assert.deepEqual(part, whole.slice(2, 5))
        assert.deepEqual(await gather(log.scan('questions', { from: { offset: 1000 } })), [])
        assert.deepEqual(await gather(log.scan('questions', { limit: 0 })), [])
      })

      it('reads from a time, in the order of time', async () => {
        await log.append(questions(20, i => `early ${i}`))
        await new Promise(resolve => setTimeout(resolve, 5))
        await log.append(questions(20, i => `late ${i}`))
        const records = await gather(log.scan('questions'))
        const times = records.map(record => record.timestamp)
        assert.deepEqual(
          times,
          [...times].sort((a, b) => a - b),
        )
        const late = records.find(record => record.key.startsWith('late'))!.timestamp
        const after = await gather(log.scan('questions', { from: { time: late } }))
        assert.equal(after.length, 20)
        assert.ok(after.every(record => record.key.startsWith('late')))
        assert.deepEqual(await gather(log.scan('questions', { from: { time: late + 10_000 } })), [])
        assert.equal((await gather(log.scan('questions', { from: { time: 0 } }))).length, 40)
      })

      it('touches no group', async () => {
        await log.append(questions(3))
        await gather(log.scan('questions'))
        assert.deepEqual(await log.committed('questions', 'g'), [0, 0, 0])
      })
    })

    describe('decode', () => {
      it('gives the value of an encoded record, and the error of a reader for any other bytes', async () => {
        await log.append([questionOutput('a')])
        const [record] = await gather(log.scan('questions'))
        assert.deepEqual(await log.decode('questions', record!.payload), question('a'))
        const bytes = new TextEncoder().encode('{}')
        await assert.rejects(log.decode('questions', bytes), { code: 'RECORD_UNDECODABLE' })
      })
    })

    describe('undecodable records', () => {
      it('are delivered with their error, in their place', async () => {
        await log.append([questionOutput('a', 'k')])
        await harness.appendRaw(log, 'questions', 'k', Uint8Array.of(1, 2, 3))
        await log.append([questionOutput('b', 'k')])
        const records = await all(read('questions'))
        assert.deepEqual(
          records.map(record => record.value?.id),
          ['a', undefined, 'b'],
        )
        assert.equal(records[1]!.error!.code, 'RECORD_UNDECODABLE')
        assert.deepEqual(records[1]!.payload, Uint8Array.of(1, 2, 3))
      })

      it('become dead letters in a flow, and the stream goes on', async () => {
        await log.append([questionOutput('a', 'k')])
        await harness.appendRaw(log, 'questions', 'k', Uint8Array.of(1, 2, 3))
        await log.append([questionOutput('b', 'k')])
        const ids = await runFlow(log, 'end')
        assert.deepEqual(ids, ['a', 'b'])
        const [record] = await gather(log.scan('deadletters'))
        const { message, ...rest } = record!.value!
        assert.match(message, /not a record of questions/)
        const [place] = (await gather(log.scan('questions'))).slice(1)
        assert.deepEqual(rest, {
          stage: 'test',
          topic: 'questions',
          partition: place!.partition,
          offset: 1,
          key: 'k',
          code: 'RECORD_UNDECODABLE',
          attempts: 1,
          payload: Uint8Array.of(1, 2, 3),
        })
        assert.deepEqual((await log.committed('questions', 'g'))[place!.partition], 3)
      })
    })

    describe('a flow', () => {
      it('commits in order what finishes out of order, once', async () => {
        await log.append(questions(200))
        await log.seal(['questions'])
        await runFlow(log, 'sealed', { records: 16, bytes: 1 << 20 })
        const written = await gather(log.scan('policies'))
        assert.equal(written.length, 200)
        assert.equal(new Set(written.map(record => record.value!.path)).size, 200)
        assert.deepEqual(await log.committed('questions', 'g'), await endsOf('questions'))
        for (let partition = 0; partition < 3; partition++) {
          const offsets = written
            .filter(record => record.value!.path.startsWith(`${partition}/`))
            .map(record => record.value!.version)
          assert.deepEqual(offsets, [...offsets.keys()])
        }
      })

      it('goes on within the process as after a restart', async () => {
        await log.append(questions(60))
        await log.seal(['questions'])
        // Taking stops a flow while its next commit is under way.
        for (const stopAfter of [1, 2, 1])
          await runFlow(log, 'sealed', { records: 4, bytes: 1 << 20 }, stopAfter)
        await runFlow(log, 'sealed', { records: 4, bytes: 1 << 20 })
        const written = (await gather(log.scan('policies'))).map(record => record.value!.path)
        assert.equal(written.length, 60)
        assert.equal(new Set(written).size, 60)
      })

      it('seals what it writes, so that the next stage ends too', async () => {
        await log.append(questions(30))
        const credits = { records: 4, bytes: 1 << 20 }
        const first = openFlow(log, 'questions', { stage: 'one', group: 'one', credits, until: 'sealed' })
        const second = openFlow(log, 'deadletters', { stage: 'two', group: 'two', credits, until: 'sealed' })
        const forward = map((record: LogRecord<'questions'>) => ({
          consumed: [record],
          outputs: [output('deadletters', record.key, letter(record.key, record.payload))],
        }))
        const end = map((record: LogRecord<'deadletters'>) => ({ consumed: [record], outputs: [] }))
        const both = [
          all(first.records$.pipe(forward, first.commit({ seal: ['deadletters'] }))),
          all(second.records$.pipe(end, second.commit())),
        ]
        await settle()
        await log.seal(['questions'])
        await Promise.all(both)
        assert.deepEqual(await log.committed('deadletters', 'two'), await endsOf('deadletters'))
        assert.ok((await log.topics()).find(info => info.topic === 'deadletters')!.sealed)
      })

      it('finishes batches', async () => {
        await log.append(questions(50))
        await log.seal(['questions'])
        const credits = { records: 10, bytes: 1 << 20, atLeast: 20 }
        const flow = openFlow(log, 'questions', { stage: 's', group: 'g', credits, until: 'sealed' })
        const gathered = map((consumed: LogRecord<'questions'>[]) => ({
          consumed,
          outputs: [letterOutput(`${consumed.length}`, 10)],
        }))
        await all(flow.records$.pipe(bufferCount(20), gathered, flow.commit()))
        const keys = (await gather(log.scan('deadletters'))).map(record => record.key)
        assert.deepEqual(keys, ['20', '20', '10'])
      })

      it('passes the error of a stage on and leaves its work to the next run', async () => {
        await log.append(questions(10, () => 'k'))
        const flow = openFlow(log, 'questions', { stage: 's', group: 'g', credits: PLENTY, until: 'end' })
        const work = concatMap(async (record: LogRecord<'questions'>) => {
          if (record.offset === 6) throw new GraspError('ENGINE_FAILED', 'the engine stopped')
          return { consumed: [record], outputs: [letterOutput('k', 1)] }
        })
        await assert.rejects(all(flow.records$.pipe(work, flow.commit())), { code: 'ENGINE_FAILED' })
        const position = Math.max(...(await log.committed('questions', 'g')))
        assert.equal(position, 6)
        assert.equal((await gather(log.scan('deadletters'))).length, 6)
      })

      it('goes on after a restart in the middle as if nothing had happened', async () => {
        await log.append(questions(120))
        await log.seal(['questions'])
        for (const stopAfter of [7, 30, 1]) {
          await runFlow(log, 'sealed', { records: 8, bytes: 1 << 20 }, stopAfter)
          await reopen()
        }
        await runFlow(log, 'sealed', { records: 8, bytes: 1 << 20 })
        const written = (await gather(log.scan('policies'))).map(record => record.value!.path)
        assert.equal(written.length, 120)
        assert.equal(new Set(written).size, 120)
      })
    })

    describe('across a restart', () => {
      it('keeps records, positions, seals and notes', async () => {
        const sent = questions(50)
        const places = await log.append(sent)
        await log.seek('questions', 'g', [1, 2, 3])
        await log.seal(['questions'])
        await log.setNote('config', 'hash 1')
        const topics = await log.topics()
        await reopen()
        assert.deepEqual(await log.topics(), topics)
        assert.deepEqual(await log.committed('questions', 'g'), [1, 2, 3])
        assert.equal(await log.note('config'), 'hash 1')
        assert.equal(await log.note('other'), undefined)
        const records = await gather(log.scan('questions'))
        const at = new Map(records.map(record => [`${record.partition}/${record.offset}`, record.value]))
        for (const [i, place] of places.entries()) {
          assert.deepEqual(at.get(`${place.partition}/${place.offset}`), sent[i]!.value)
        }
      })

      it('continues offsets where they ended', async () => {
        const [first] = await log.append([questionOutput('a', 'k')])
        await reopen()
        const [second] = await log.append([questionOutput('b', 'k')])
        assert.equal(second!.partition, first!.partition)
        assert.ok(second!.offset > first!.offset)
      })
    })

    describe('close', () => {
      it('may be called twice; afterwards nothing else may', async () => {
        await log.append(questions(1))
        await log.close()
        await log.close()
        await assert.rejects(log.append(questions(1)), { code: 'LOG_UNAVAILABLE' })
        await assert.rejects(log.topics(), { code: 'LOG_UNAVAILABLE' })
        await assert.rejects(gather(log.scan('questions')), { code: 'LOG_UNAVAILABLE' })
        await assert.rejects(all(read('questions')), { code: 'LOG_UNAVAILABLE' })
      })

      it('tells a reader that still waits', async () => {
        const reading = all(read('questions', { until: 'never' }))
        const rejected = assert.rejects(reading, { code: 'LOG_UNAVAILABLE' })
        await log.close()
        await rejected
      })

      it('waits for what is being written', async () => {
        const writing = log.append(questions(10))
        await log.close()
        assert.equal((await writing).length, 10)
        log = await harness.open()
        assert.equal((await gather(log.scan('questions'))).length, 10)
      })
    })
  })
}

/** A stage that finishes its records in a scrambled order; gives the ids that it saw. */
async function runFlow(
  log: Log,
  end: ReadOptions['until'],
  credits = PLENTY,
  stopAfter = Number.POSITIVE_INFINITY,
): Promise<string[]> {
  const ids: string[] = []
  const flow = openFlow(log, 'questions', { stage: 'test', group: 'g', credits, until: end })
  const work = async (record: LogRecord<'questions'>) => {
    ids.push(record.value.id)
    for (let turns = (record.offset * 7 + record.partition) % 5; turns > 0; turns--) {
      await new Promise(resolve => setImmediate(resolve))
    }
    const { partition, offset, key } = record
    const policy = { weightsHash: '', tokenizer: '', score: null, best: false }
    const value = { ...policy, version: offset, path: `${partition}/${offset}` }
    return { consumed: [record], outputs: [output('policies', key, value)] }
  }
  const stage$ = flow.records$.pipe(mergeMap(work, 8), flow.commit())
  await all(Number.isFinite(stopAfter) ? stage$.pipe(take(stopAfter)) : stage$)
  return ids
}

function pick({ topic, partition, offset }: Place): Place {
  return { topic, partition, offset }
}

async function eventually(condition: () => Promise<boolean>): Promise<void> {
  const start = Date.now()
  while (!(await condition())) {
    if (Date.now() - start > 60_000) throw new Error(`waited in vain for ${condition}`)
    await settle()
  }
}

function assertAscending(records: readonly Place[]): void {
  const last = new Map<number, number>()
  for (const { partition, offset } of records) {
    assert.ok(
      offset > (last.get(partition) ?? -1),
      `offset ${offset} of partition ${partition} is out of order`,
    )
    last.set(partition, offset)
  }
}

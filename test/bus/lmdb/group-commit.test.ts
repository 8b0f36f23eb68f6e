import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { type Database, open, type RootDatabase } from 'lmdb'
import { GroupCommit } from '../../../bus/lmdb/group-commit.ts'
import { GraspError } from '../../../errors/grasp-error.ts'
import { temporaryFolder } from './harness.ts'

describe('group commit', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let root: RootDatabase
  let items: Database<number, string>
  let writes: GroupCommit
  let transactions: boolean[]
  beforeEach(async () => {
    folder = await temporaryFolder()
    root = open({ path: folder.path, noSubdir: false, overlappingSync: false, eventTurnBatching: false })
    items = root.openDB<number, string>({ name: 'items' })
    transactions = []
    writes = new GroupCommit(root, committed => transactions.push(committed))
  })
  afterEach(async () => {
    await writes.pending
    await root.close()
    await folder.remove()
  })
  const put = (key: string, value: number) => writes.run({ work: () => items.putSync(key, value) })
  const stored = () => Object.fromEntries([...items.getRange({})].map(({ key, value }) => [key, value]))

  it('gives the result of the work once it is in', async () => {
    const result = await writes.run({
      work: () => {
        items.putSync('a', 1)
        return 'done'
      },
    })
    assert.equal(result, 'done')
    assert.deepEqual(stored(), { a: 1 })
  })

  it('takes what is asked for in one turn into one transaction, in order', async () => {
    const order: number[] = []
    await Promise.all([1, 2, 3].map(i => writes.run({ work: () => order.push(i) })))
    assert.deepEqual(order, [1, 2, 3])
    assert.deepEqual(transactions, [true])
  })

  it('gathers what is asked for while a transaction runs', async () => {
    const first = put('a', 1)
    await new Promise(resolve => setImmediate(resolve))
    await Promise.all([first, put('b', 2), put('c', 3), put('d', 4)])
    assert.deepEqual(transactions, [true, true])
  })

  it('does not gather more bytes than a transaction should hold', async () => {
    const large = () => writes.run({ bytes: 40 << 20, work: () => {} })
    await Promise.all([large(), large(), large(), put('a', 1)])
    assert.deepEqual(transactions, [true, true, true])
  })

  it('lets one job refuse without harm to the others', async () => {
    const refusal = new GraspError('LOG_MISMATCH', 'no')
    const results = await Promise.allSettled([
      put('a', 1),
      writes.run({
        check: () => {
          throw refusal
        },
        work: () => items.putSync('never', 0),
      }),
      put('b', 2),
    ])
    assert.deepEqual(
      results.map(result => result.status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    assert.equal((results[1] as PromiseRejectedResult).reason, refusal)
    assert.deepEqual(stored(), { a: 1, b: 2 })
  })

  it('undoes everything when a job breaks, and goes on', async () => {
    const results = await Promise.allSettled([
      put('a', 1),
      writes.run({
        work: () => {
          items.putSync('b', 2)
          throw new GraspError('LOG_UNAVAILABLE', 'broken')
        },
      }),
      put('c', 3),
    ])
    for (const result of results) assert.match(String((result as PromiseRejectedResult).reason), /broken/)
    assert.deepEqual(stored(), {})
    await put('d', 4)
    assert.deepEqual(stored(), { d: 4 })
    assert.deepEqual(transactions, [false, true])
  })

  it('tells when all is settled', async () => {
    assert.equal(writes.pending, undefined)
    const results: string[] = []
    const failing = writes.run({
      check: () => {
        throw new GraspError('LOG_MISMATCH', 'no')
      },
      work: () => {},
    })
    failing.catch(() => results.push('failed'))
    await writes.pending
    assert.deepEqual(results, ['failed'])
    await new Promise(resolve => setImmediate(resolve))
    assert.equal(writes.pending, undefined)
  })
})

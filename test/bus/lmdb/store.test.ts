import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { createCodec } from '../../../bus/codec.ts'
import { writeEntry } from '../../../bus/lmdb/entry.ts'
import { type Environment, openEnvironment } from '../../../bus/lmdb/environment.ts'
import { scanTopic } from '../../../bus/lmdb/scan.ts'
import { Store } from '../../../bus/lmdb/store.ts'
import type { Topic } from '../../../schemas/types.ts'
import { gather, question } from '../samples.ts'
import { temporaryFolder } from './harness.ts'

describe('the store', () => {
  const codec = createCodec()
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let environment: Environment
  let store: Store
  beforeEach(async () => {
    folder = await temporaryFolder()
    const { schemas } = codec
    environment = openEnvironment({
      path: folder.path,
      partitions: { questions: 2 },
      readOnly: false,
      schemas,
    })
    store = new Store(environment)
  })
  afterEach(async () => {
    await environment.root.close()
    await folder.remove()
  })

  const entry = (id: string) => writeEntry(id, allocate => codec.encode('questions', question(id), allocate))
  const append = (partition: number, now: number, ...ids: string[]) =>
    environment.root.transactionSync(() => store.append('questions', partition, ids.map(entry), now))
  const from = async (time: number) => {
    const records = await gather(scanTopic(store, codec, 'questions', { from: { time } }))
    return records.map(record => record.key).join(' ')
  }

  it('numbers entries from 0 within each partition', () => {
    assert.equal(append(0, 1, 'a', 'b'), 0)
    assert.equal(append(1, 1, 'c'), 0)
    assert.equal(append(0, 1, 'd'), 2)
    assert.deepEqual(store.ends('questions'), [3, 1])
  })

  it('never lets timestamps fall, even when the clock does', () => {
    append(0, 100, 'a')
    append(0, 50, 'b')
    append(0, 101, 'c')
    assert.deepEqual(
      [0, 1, 2].map(offset => store.timestamp('questions', 0, offset)),
      [100, 100, 101],
    )
  })

  it('finds the first record of a time', async () => {
    append(0, 10, 'a', 'b')
    append(0, 20, 'c', 'd', 'e')
    append(0, 30, 'f')
    append(1, 25, 'x')
    assert.equal(await from(0), 'a b c d e x f')
    assert.equal(await from(10), 'a b c d e x f')
    assert.equal(await from(11), 'c d e x f')
    assert.equal(await from(20), 'c d e x f')
    assert.equal(await from(21), 'x f')
    assert.equal(await from(30), 'f')
    assert.equal(await from(31), '')
  })

  it('reports a record that is missing', () => {
    append(0, 1, 'a', 'b')
    environment.root.transactionSync(() => environment.records.get('questions')![0]!.removeSync(1))
    const expected = { code: 'LOG_UNAVAILABLE', message: /damaged: questions\/0 lacks offset 1/ }
    assert.throws(() => store.entry('questions', 0, 1), expected)
  })

  it('refuses to write over a record', () => {
    append(0, 1, 'a')
    environment.root.transactionSync(() => environment.meta.putSync(['end', 'questions', 0], [0, 1]))
    assert.throws(() => append(0, 2, 'b'), /offset 0 of questions\/0 is taken/)
    store.refresh()
    assert.equal(store.end('questions', 0), 0, 'the transaction was undone')
  })

  it('names partitions and topics that do not exist', () => {
    assert.throws(() => store.entry('questions', 2, 0), {
      code: 'LOG_MISMATCH',
      message: /partitions 0 to 1, not 2/,
    })
    assert.throws(() => store.ends('nonsense' as Topic), {
      code: 'LOG_MISMATCH',
      message: /no topic nonsense/,
    })
  })

  it('reads records of an older schema, which the log holds, and gives their bytes unchanged', async () => {
    const [name, schema] = ['questions' as const, JSON.parse(codec.schemas.get('questions')!.json)]
    const older = createCodec(
      undefined,
      new Map([[name, { ...schema, fields: [{ name: 'legacy', type: 'string' }, ...schema.fields] }]]),
    )
    const { fingerprint, json } = older.schemas.get('questions')!
    const value = { ...question('old'), legacy: 'x'.repeat(5000) }
    const encoded = older.encode('questions', value)
    const old = writeEntry('old', allocate => allocate(encoded.length).set(encoded))
    environment.root.transactionSync(() => {
      store.append('questions', 0, [old, entry('new'), old], 1)
      environment.meta.putSync(['schema', fingerprint], json)
    })
    // Looking up the schema reads from the same memory that the record was read into.
    const reading = createCodec(store)
    const records = await gather(scanTopic(store, reading, 'questions', {}))
    assert.deepEqual(
      records.map(record => record.value),
      [question('old'), question('new'), question('old')],
    )
    assert.deepEqual(records[0]!.payload, encoded)
    const strange = await gather(scanTopic(store, codec, 'questions', { limit: 1 }))
    assert.equal(strange[0]!.error!.code, 'SCHEMA_UNKNOWN')
    assert.deepEqual(strange[0]!.payload, encoded)
  })
})

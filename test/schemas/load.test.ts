import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { type AvroNode, loadSchemas, readSchemaFiles } from '../../schemas/load.ts'
import { TOPICS } from '../../schemas/types.ts'

describe('schemas', () => {
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'grasp-schemas-'))
    mkdirSync(join(directory, 'parts'))
  })
  afterEach(() => rmSync(directory, { recursive: true }))
  const write = (file: string, schema: unknown) => {
    writeFileSync(join(directory, file), typeof schema === 'string' ? schema : JSON.stringify(schema))
  }
  const record = (name: string, ...types: unknown[]) => ({
    type: 'record',
    name,
    namespace: 'grasp',
    fields: types.map((type, i) => ({ name: `f${i}`, type })),
  })

  it('has one file for each topic', () => {
    assert.deepEqual([...loadSchemas().keys()], TOPICS)
  })

  it('inlines a referred record where it is first used, and names it after that', () => {
    write(
      'things.avsc',
      record('Thing', 'grasp.Part', { type: 'array', items: 'Part' }, ['null', 'grasp.Part']),
    )
    write('parts/Part.avsc', record('Part', 'string'))
    const thing = loadSchemas(directory).get('things')!
    assert.deepEqual(
      thing.fields!.map(field => field.type),
      [record('Part', 'string'), { type: 'array', items: 'grasp.Part' }, ['null', 'grasp.Part']],
    )
  })

  it('inlines records of other topics, and what they refer to', () => {
    write('a.avsc', record('A', 'grasp.B'))
    write('b.avsc', record('B', 'grasp.Part'))
    write('parts/Part.avsc', record('Part', 'int'))
    const a = loadSchemas(directory).get('a')!
    const b = a.fields![0]!.type as AvroNode
    assert.deepEqual(b.fields![0]!.type, record('Part', 'int'))
  })

  it('names the file that is not a schema', () => {
    write('broken.avsc', '{ "type": "record", ')
    assert.throws(() => readSchemaFiles(directory), { code: 'DATA_INVALID', message: /broken\.avsc/ })
    write('broken.avsc', '["null"]')
    assert.throws(() => readSchemaFiles(directory), {
      code: 'DATA_INVALID',
      message: /broken\.avsc: expected one/,
    })
  })

  it('names the reference that no file defines', () => {
    write('a.avsc', record('A', 'grasp.Missing'))
    const expected = { code: 'DATA_INVALID', message: /grasp\.A refers to grasp\.Missing/ }
    assert.throws(() => loadSchemas(directory), expected)
  })

  it('refuses two definitions of a name', () => {
    write('a.avsc', record('A', 'int'))
    write('parts/A.avsc', record('A', 'int'))
    assert.throws(() => readSchemaFiles(directory), { code: 'DATA_INVALID', message: /grasp\.A is defined/ })
  })
})

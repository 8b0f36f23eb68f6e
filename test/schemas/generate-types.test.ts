import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { generateTypes } from '../../schemas/generate-types.ts'
import { readSchemaFiles } from '../../schemas/load.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

describe('the generated types', () => {
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'grasp-types-'))
  })
  afterEach(() => rmSync(directory, { recursive: true }))
  const write = (schema: unknown) => writeFileSync(join(directory, 'things.avsc'), JSON.stringify(schema))
  const run = (...args: string[]) => {
    const script = join(root, 'schemas/generate-types.ts')
    return spawnSync(process.execPath, ['--import', 'tsx', script, ...args, directory], {
      cwd: root,
      encoding: 'utf8',
    })
  }

  it('in the repository follow from the schemas', () => {
    assert.equal(readFileSync(join(root, 'schemas/types.ts'), 'utf8'), generateTypes(readSchemaFiles()))
  })

  it('cover every kind of Avro type', () => {
    write({
      type: 'record',
      name: 'Thing',
      doc: 'A thing.',
      fields: [
        { name: 'a', type: 'long', doc: 'How many.' },
        { name: 'b', type: ['null', 'string'] },
        { name: 'c', type: { type: 'array', items: { type: 'record', name: 'Inner', fields: [] } } },
        { name: 'd', type: 'bytes', default: '' },
        { name: 'e', type: { type: 'map', values: 'double' } },
        { name: 'f', type: { type: 'enum', name: 'Colour', symbols: ['RED', 'BLUE'] } },
        { name: 'g', type: { type: 'array', items: ['null', 'int'] } },
        { name: 'h', type: { type: 'fixed', name: 'Hash', size: 32 } },
        { name: 'i', type: 'boolean' },
        { name: 'j', type: 'Inner' },
      ],
    })
    assert.equal(
      generateTypes(readSchemaFiles(directory)),
      `// Generated from the .avsc files by \`npm run schemas:types\`; do not edit.

export interface Inner {}

/** A thing. */
export interface Thing {
  /** How many. */
  a: number
  b: string | null
  c: readonly Inner[]
  d: Uint8Array
  e: Readonly<Record<string, number>>
  f: 'RED' | 'BLUE'
  g: readonly (number | null)[]
  h: Uint8Array
  i: boolean
  j: Inner
}

/** The record of each topic. */
export interface Records {
  things: Thing
}

export type Topic = keyof Records

export const TOPICS: readonly Topic[] = ['things']
`,
    )
  })

  it('refuse two records of one name', () => {
    const inner = (type: string) => ({ type: 'record', name: 'Inner', fields: [{ name: 'x', type }] })
    const fields = [
      { name: 'a', type: inner('int') },
      { name: 'b', type: inner('string') },
    ]
    write({ type: 'record', name: 'Thing', fields })
    assert.throws(() => generateTypes(readSchemaFiles(directory)), { code: 'DATA_INVALID', message: /Inner/ })
  })

  it('--check tells when they are missing or stale', () => {
    write({ type: 'record', name: 'Thing', fields: [{ name: 'a', type: 'int' }] })
    const missing = run('--check')
    assert.equal(missing.status, 1)
    assert.match(missing.stderr, /types\.ts is missing: run `npm run schemas:types`/)
    assert.equal(run().status, 0)
    assert.equal(run('--check').status, 0)
    write({ type: 'record', name: 'Thing', fields: [{ name: 'a', type: 'string' }] })
    const stale = run('--check')
    assert.equal(stale.status, 1)
    assert.match(stale.stderr, /types\.ts does not follow from the \.avsc files/)
  })
})

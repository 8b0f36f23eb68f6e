import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { releaseFault } from '../../schemas/check-released.ts'
import { incompatibilities } from '../../schemas/compatibility.ts'
import { fingerprint, fingerprintText } from '../../schemas/fingerprint.ts'
import type { AvroSchema } from '../../schemas/load.ts'
import { release } from '../../schemas/release.ts'
import { readReleases, releasedSchema } from '../../schemas/released.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

const record = (fields: unknown[], name = 'Thing') => ({ type: 'record', name, fields }) as AvroSchema
const array = (items: unknown) => ({ type: 'array', items })
const colour = (...symbols: string[]) => ({ type: 'enum', name: 'Colour', symbols })

describe('compatibility of schemas', () => {
  const was = record([
    { name: 'a', type: 'int' },
    { name: 'b', type: array(record([{ name: 'c', type: 'string' }], 'Inner')) },
  ])
  const change = (a: unknown, ...more: unknown[]) =>
    record([
      { name: 'a', type: a },
      { name: 'b', type: array(record([{ name: 'c', type: 'string' }, ...more], 'Inner')) },
    ])

  const fine: [string, AvroSchema][] = [
    ['nothing', was],
    ['a wider number', change('double')],
    ['a union of what it was and more', change(['null', 'int'])],
    ['a field with a default', change('int', { name: 'd', type: ['null', 'long'], default: null })],
    ['a field less', record([{ name: 'a', type: 'int' }])],
    ['a field renamed with an alias', record([{ name: 'z', type: 'int', aliases: ['a'] }])],
  ]
  for (const [name, is] of fine) {
    it(`is kept by ${name}`, () => assert.deepEqual(incompatibilities(was, is), []))
  }

  const broken: [string, AvroSchema, AvroSchema, string[]][] = [
    ['another type', was, change('string'), ['field a: was int and is string, which cannot read it']],
    [
      'a narrower number',
      record([{ name: 'a', type: 'double' }]),
      record([{ name: 'a', type: 'int' }]),
      ['field a: was double and is int, which cannot read it'],
    ],
    [
      'a union that loses a type',
      change(['null', 'int']),
      change('int'),
      ['field a: was null or int and is int, which cannot read it'],
    ],
    [
      'a new field of an inner record without a default',
      was,
      change('int', { name: 'd', type: 'long' }),
      ['field b[].d: is new and has no default, so older records lack it; give it one'],
    ],
    [
      'several at once',
      was,
      change('bytes', { name: 'd', type: 'long' }),
      [
        'field a: was int and is bytes, which cannot read it',
        'field b[].d: is new and has no default, so older records lack it; give it one',
      ],
    ],
    [
      'a symbol less',
      record([{ name: 'e', type: colour('RED', 'BLUE') }]),
      record([{ name: 'e', type: colour('BLUE') }]),
      ['field e: no longer has the symbol RED'],
    ],
    [
      'a map of something else',
      record([{ name: 'm', type: { type: 'map', values: 'string' } }]),
      record([{ name: 'm', type: { type: 'map', values: 'int' } }]),
      ['field m{}: was string and is int, which cannot read it'],
    ],
    [
      'an array instead',
      was,
      change(array('int')),
      ['field a: was int and is an array of int, which cannot read it'],
    ],
    [
      'another name',
      was,
      record([{ name: 'a', type: 'int' }], 'Other'),
      ['the record: was Thing and is Other, which cannot read it'],
    ],
  ]
  for (const [name, before, now, expected] of broken) {
    it(`is broken by ${name}`, () => assert.deepEqual(incompatibilities(before, now), expected))
  }

  it('of a record that holds itself is found', () => {
    const list = (value: string) =>
      record([
        { name: 'value', type: value },
        { name: 'next', type: ['null', 'Thing'] },
      ])
    assert.deepEqual(incompatibilities(list('string'), list('string')), [])
    assert.match(
      incompatibilities(list('string'), list('int')).join('\n'),
      /field value: was string and is int/,
    )
  })
})

it('the schemas of released versions come with the package', () => {
  const releases = readReleases()
  assert.ok(releases.length > 0)
  for (const { schemas } of releases) {
    for (const schema of Object.values(schemas)) {
      assert.equal(releasedSchema(fingerprintText(fingerprint(schema))), JSON.stringify(schema))
    }
  }
})

describe('npm run schemas:check', () => {
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'grasp-released-'))
    write([{ name: 'a', type: 'int' }])
  })
  afterEach(() => rmSync(directory, { recursive: true }))

  function write(fields: unknown[]) {
    writeFileSync(join(directory, 'things.avsc'), JSON.stringify(record(fields)))
  }
  it('passes without a release, and what was released', () => {
    assert.equal(releaseFault(directory), undefined)
    assert.equal(release(directory, '1.2.3'), undefined)
    assert.equal(releaseFault(directory), undefined)
    assert.deepEqual(
      readReleases(directory).map(({ version }) => version),
      ['1.2.3'],
    )
  })

  it('names version, topic, field and what to do', () => {
    release(directory, '1.2.3')
    write([{ name: 'a', type: 'string' }])
    const script = join(root, 'schemas/check-released.ts')
    const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', script, directory], {
      cwd: root,
      encoding: 'utf8',
    })
    assert.equal(status, 1)
    assert.match(stderr, /cannot read the records of version 1\.2\.3 any more \(.*1\.2\.3\.json\):/)
    assert.match(stderr, /topic things, field a: was int and is string, which cannot read it/)
    assert.match(stderr, /Give new fields a default/)
  })

  it('holds the schemas against every release, not only the last', () => {
    release(directory, '1.9.0')
    write([])
    release(directory, '1.10.0')
    write([{ name: 'a', type: 'string', default: '' }])
    assert.match(releaseFault(directory) ?? '', /records of version 1\.9\.0/)
  })

  it('misses a topic that is gone', () => {
    release(directory, '1.2.3')
    rmSync(join(directory, 'things.avsc'))
    assert.match(releaseFault(directory) ?? '', /topic things: it is gone, but version 1\.2\.3 wrote it/)
  })

  it('a version is released once', () => {
    release(directory, '1.2.3')
    assert.equal(release(directory, '1.2.3'), undefined)
    write([{ name: 'b', type: 'int' }])
    assert.match(release(directory, '1.2.3') ?? '', /was released with other schemas; raise the version/)
    assert.equal(release(directory, '1.2.3', true), undefined)
    assert.match(readFileSync(join(directory, 'released', '1.2.3.json'), 'utf8'), /"name":"b"/)
    assert.match(release(directory, 'next') ?? '', /next is not a version/)
  })

  it('a damaged release is named', () => {
    release(directory, '1.2.3')
    writeFileSync(join(directory, 'released', '1.2.3.json'), '{')
    assert.throws(() => releaseFault(directory), /released.1\.2\.3\.json: /)
  })
})

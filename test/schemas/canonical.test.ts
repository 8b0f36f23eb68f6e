import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { canonicalForm } from '../../schemas/canonical.ts'
import type { AvroSchema } from '../../schemas/load.ts'

describe('Parsing Canonical Form', () => {
  // Each case is one of the transformations of the Avro specification.
  const cases: [string, unknown, string][] = [
    ['[PRIMITIVES] a primitive in object form becomes its name', { type: 'int' }, '"int"'],
    [
      '[FULLNAMES] names become full, namespaces disappear',
      {
        type: 'record',
        name: 'A',
        namespace: 'x.y',
        fields: [{ name: 'f', type: { type: 'fixed', name: 'B', size: 4 } }],
      },
      '{"name":"x.y.A","type":"record","fields":[{"name":"f","type":{"name":"x.y.B","type":"fixed","size":4}}]}',
    ],
    [
      '[FULLNAMES] a reference within a namespace is the full name',
      {
        type: 'record',
        name: 'x.A',
        fields: [{ name: 'next', type: ['null', 'A'] }],
      },
      '{"name":"x.A","type":"record","fields":[{"name":"next","type":["null","x.A"]}]}',
    ],
    [
      '[STRIP] docs, defaults, aliases and orders go',
      {
        type: 'record',
        name: 'A',
        doc: 'd',
        aliases: ['Z'],
        fields: [{ name: 'f', type: 'long', default: 1, doc: 'd', order: 'ignore', aliases: ['g'] }],
      },
      '{"name":"A","type":"record","fields":[{"name":"f","type":"long"}]}',
    ],
    [
      '[ORDER] attributes stand in one order',
      { symbols: ['A', 'B'], name: 'E', type: 'enum' },
      '{"name":"E","type":"enum","symbols":["A","B"]}',
    ],
    ['[ORDER] arrays', { items: 'string', type: 'array' }, '{"type":"array","items":"string"}'],
    ['[ORDER] maps', { values: { type: 'bytes' }, type: 'map' }, '{"type":"map","values":"bytes"}'],
    [
      '[INTEGERS] sizes are plain numbers',
      { type: 'fixed', name: 'F', size: '016' },
      '{"name":"F","type":"fixed","size":16}',
    ],
    ['[WHITESPACE] unions', ['null', { type: 'string' }], '["null","string"]'],
  ]
  for (const [name, schema, expected] of cases) {
    it(name, () => assert.equal(canonicalForm(schema as AvroSchema), expected))
  }
})

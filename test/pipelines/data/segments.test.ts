import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { segments } from '../../../pipelines/data/segments.ts'

describe('segments', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'grasp-segments-'))
  })
  after(() => rmSync(folder, { recursive: true }))

  async function cut(content: string, maxBytes = 1000): Promise<[number, number, number, string | null][]> {
    const file = join(folder, 'file')
    writeFileSync(file, content)
    const found: [number, number, number, string | null][] = []
    for await (const { item, line, size, bytes } of segments(file, { label: 'file', maxBytes })) {
      found.push([item, line, size, bytes === null ? null : Buffer.from(bytes).toString()])
    }
    return found
  }

  test('elements of an array with their lines, whatever stands in their texts', async () => {
    assert.deepEqual(await cut('\n[ 1,\n\n{"a": ["],[", "\\"}"]} , "x"\n]\n'), [
      [1, 2, 1, '1'],
      [2, 4, 21, '{"a": ["],[", "\\"}"]}'],
      [3, 4, 3, '"x"'],
    ])
  })

  test('lines, blank ones left out but counted', async () => {
    assert.deepEqual(await cut('{"a": 1}\n\n  {"b": 2}  \r\n{"c": 3}'), [
      [1, 1, 8, '{"a": 1}'],
      [2, 3, 8, '{"b": 2}'],
      [3, 4, 8, '{"c": 3}'],
    ])
  })

  test('what is larger than the limit is passed over, not held', async () => {
    const large = `"${'x'.repeat(5000)}"`
    assert.deepEqual(await cut(`[1, ${large}, 3]`), [
      [1, 1, 1, '1'],
      [2, 1, 5003, null],
      [3, 1, 1, '3'],
    ])
    const lines = await cut(`{"a": ${large}}\n{}`)
    assert.deepEqual(
      lines.map(([, , , text]) => text),
      [null, '{}'],
    )
  })
})

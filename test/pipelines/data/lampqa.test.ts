import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { GraspError } from '../../../errors/grasp-error.ts'
import { countItems, type LampQaItem, readLampQa } from '../../../pipelines/data/lampqa.ts'

type Json = Record<string, unknown>

function item(id: unknown, changes: Json = {}): Json {
  return {
    id,
    question: 'Which tea should I try?',
    narrative: 'I am new to tea.',
    category: 'Lifestyle_and_Personal_Development',
    profile: [
      { id: 'p1', text: 'I avoid caffeine.' },
      { id: 'p2', text: 'I like mint.' },
    ],
    rubric_aspects: [{ aspect: 'caffeine-free', reason: 'they avoid it', evidence: 'post 1' }],
    ...changes,
  }
}

describe('readLampQa', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'grasp-lampqa-'))
  })
  after(() => rmSync(folder, { recursive: true }))

  function write(content: string | Uint8Array, name = 'data.json'): string {
    const file = join(folder, name)
    writeFileSync(file, content)
    return file
  }
  async function read(content: string | Uint8Array, options = {}, name = 'data.json'): Promise<LampQaItem[]> {
    const file = write(content, name)
    const settings = { split: 'train', maxPostBytes: 1024 * 1024, label: name, ...options }
    const items: LampQaItem[] = []
    for await (const found of readLampQa(file, settings)) items.push(found)
    return items
  }
  const ids = (items: LampQaItem[]) => items.map(({ question }) => question?.id ?? null)
  const messages = (items: LampQaItem[]) => items.flatMap(({ error }) => error?.message ?? [])
  /** The one complaint about an item changed so, between two good ones. */
  async function complaint(changes: Json, options = {}): Promise<string> {
    const items = await read(JSON.stringify([item('a'), item('b', changes), item('c')]), options)
    assert.deepEqual([items[0]?.question?.id, items[2]?.question?.id], ['a', 'c'], 'the rest goes on')
    const error = items[1]?.error
    assert.ok(error instanceof GraspError)
    assert.equal(error.code, 'RECORD_INVALID')
    assert.match(error.message, /^data\.json: item 2 \(line 1(, id 'b')?\): /)
    return error.message.replace(/^.*?\): /, '')
  }
  async function refused(content: string | Uint8Array, name = 'data.json'): Promise<string> {
    let message = ''
    await assert.rejects(countItems(write(content, name), name), (error: unknown) => {
      assert.ok(error instanceof GraspError)
      assert.equal(error.code, 'DATA_INVALID')
      message = error.message
      return true
    })
    return message
  }

  test('maps every field of the benchmark, in an array and in lines alike', async () => {
    const expected = {
      id: 'q1',
      user: 'u9',
      split: 'train',
      category: 'Lifestyle_and_Personal_Development',
      question: 'Which tea should I try?',
      narrative: 'I am new to tea.',
      profile: [
        { id: 'p1', text: 'I avoid caffeine.' },
        { id: 'p2', text: 'I like mint.' },
      ],
      aspects: [{ aspect: 'caffeine-free', reason: 'they avoid it', evidence: 'post 1' }],
    }
    const source = item('q1', { user: 'u9', other: { ignored: true } })
    const [inArray] = await read(JSON.stringify([source], null, 2))
    const [inLines] = await read(JSON.stringify(source), {}, 'data.jsonl')
    assert.deepEqual(inArray?.question, expected)
    assert.deepEqual(inLines?.question, expected)
  })

  test('the user is the id where none is given; ids may be integers', async () => {
    const [first] = await read(JSON.stringify([item(7)]))
    assert.equal(first?.question?.id, '7')
    assert.equal(first?.question?.user, '7')
  })

  test('limit takes the first items', async () => {
    const text = JSON.stringify([item('a'), item('b'), item('c')])
    assert.deepEqual(ids(await read(text, { limit: 2 })), ['a', 'b'])
  })

  test('other scripts, emoji and escapes arrive as they are', async () => {
    const question = '茶は何がいい？ какой чай 🫖👩‍👩‍👧 "\\ \u2028 \t [}],{'
    const [one] = await read(JSON.stringify([item('ü', { question })]))
    assert.equal(one?.question?.question, question)
    assert.equal(one?.question?.id, 'ü')
    const escaped = JSON.stringify(item('x', { question })).replaceAll(
      /[^\x20-\x7e]/g,
      c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
    const [line] = await read(escaped, {}, 'data.jsonl')
    assert.equal(line?.question?.question, question)
  })

  test('byte order mark, CRLF, blank lines, no newline at the end', async () => {
    const rows = [item('a'), item('b')].map(row => JSON.stringify(row))
    const lines = await read(`\uFEFF\r\n${rows[0]}\r\n\r\n  \r\n${rows[1]}`, {}, 'data.jsonl')
    assert.deepEqual(ids(lines), ['a', 'b'])
    assert.deepEqual(
      lines.map(({ line }) => line),
      [2, 5],
    )
    const array = await read(`\uFEFF[\r\n${rows[0]},\r\n\r\n${rows[1]}\r\n]\r\n`)
    assert.deepEqual(ids(array), ['a', 'b'])
    assert.deepEqual(
      array.map(({ line }) => line),
      [2, 4],
    )
  })

  test('items longer than a read, cut anywhere', async () => {
    const long = '\\"é🫖'.repeat(200_000)
    const rows = Array.from({ length: 5 }, (_, i) => item(`r${i}`, { narrative: `${'x'.repeat(i)}${long}` }))
    for (const name of ['data.json', 'data.jsonl']) {
      const text =
        name === 'data.json' ? JSON.stringify(rows) : rows.map(row => JSON.stringify(row)).join('\n')
      const items = await read(text, {}, name)
      assert.deepEqual(
        items.map(({ question }) => question?.narrative),
        rows.map(({ narrative }) => narrative),
      )
    }
  })

  test('a missing field is named', async () => {
    assert.equal(await complaint({ question: undefined }), 'question is missing; expected a text')
    assert.equal(await complaint({ category: undefined }), 'category is missing; expected a text')
    assert.equal(
      await complaint({ narrative: undefined }),
      'narrative is missing; expected a text (it may be empty)',
    )
    assert.equal(await complaint({ id: undefined }), 'id is missing; expected a text or an integer')
    assert.match(
      await complaint({ profile: undefined }),
      /^profile is missing; expected a list of \{id, text\}/,
    )
    assert.match(
      await complaint({ rubric_aspects: undefined }),
      /^rubric_aspects is missing; expected a list of/,
    )
  })

  test('wrong types and blanks say what was found', async () => {
    assert.equal(await complaint({ question: 5 }), 'question is 5 (a number); expected a text')
    assert.equal(await complaint({ question: ' ' }), 'question is an empty text; expected a text')
    assert.equal(await complaint({ id: 1.5 }), 'id is 1.5 (a number); expected a text or an integer')
    assert.equal(await complaint({ user: null }), 'user is null; expected a text or an integer')
    assert.match(await complaint({ profile: 'posts' }), /^profile is a text; expected a list/)
    assert.equal(
      await complaint({ profile: ['post'] }),
      'profile[0] is a text; expected an object {id, text}',
    )
  })

  test('an empty profile and no aspects are dead letters', async () => {
    assert.match(await complaint({ profile: [] }), /^profile is an empty list; .* nothing to personalise by$/)
    assert.match(
      await complaint({ rubric_aspects: [] }),
      /^rubric_aspects is an empty list; .* no answer can be judged$/,
    )
  })

  test('a wrong aspect or post is named by its place', async () => {
    const aspect = (changes: Json) => ({
      rubric_aspects: [
        { aspect: 'a', reason: '', evidence: '' },
        { aspect: 'b', reason: 'r', evidence: 'e', ...changes },
      ],
    })
    assert.equal(
      await complaint(aspect({ aspect: ['b'] })),
      'rubric_aspects[1].aspect is a list; expected a text',
    )
    assert.equal(
      await complaint(aspect({ reason: undefined })),
      'rubric_aspects[1].reason is missing; expected a text (it may be empty)',
    )
    assert.equal(
      await complaint(aspect({ evidence: 3 })),
      'rubric_aspects[1].evidence is 3 (a number); expected a text (it may be empty)',
    )
    assert.equal(
      await complaint({ rubric_aspects: ['caffeine'] }),
      'rubric_aspects[0] is a text; expected an object {aspect, reason, evidence}',
    )
    assert.equal(await complaint({ profile: [{ id: 'p' }] }), 'profile[0].text is missing; expected a text')
    assert.equal(
      await complaint({ profile: [{ text: 't' }] }),
      'profile[0].id is missing; expected a text or an integer',
    )
  })

  test('a post of 2 MB is refused with both sizes; a larger limit takes it', async () => {
    const profile = [{ id: 'p', text: 'é'.repeat(1024 * 1024) }]
    assert.equal(
      await complaint({ profile }),
      'profile[0].text has 2097152 bytes; expected at most 1048576 (data.maxPostBytes)',
    )
    const [big] = await read(JSON.stringify([item('a', { profile })]), { maxPostBytes: 2097152 })
    assert.equal(big?.question?.id, 'a')
  })

  test('the second of two equal ids is an error, across files too', async () => {
    const taken = new Map<string, string>()
    const first = await read(JSON.stringify([item('a'), item('a')]), { taken }, 'one.json')
    assert.deepEqual(ids(first), ['a', null])
    assert.match(
      messages(first)[0] ?? '',
      /^one\.json: item 2 .* id 'a' was already used by one\.json item 1/,
    )
    const second = await read(JSON.stringify([item('a'), item('b')]), { taken }, 'two.json')
    assert.deepEqual(ids(second), [null, 'b'])
    assert.match(messages(second)[0] ?? '', /was already used by one\.json item 1/)
  })

  test('a damaged item costs itself alone, and is kept as it is', async () => {
    const good = JSON.stringify(item('b'))
    const inLines = await read(`{"id": "a", oops}\n${good}\n`, {}, 'data.jsonl')
    assert.deepEqual(ids(inLines), [null, 'b'])
    assert.match(messages(inLines)[0] ?? '', /^data\.jsonl: item 1 \(line 1\): is not valid JSON: /)
    assert.equal((inLines[0] as { found: unknown }).found, '{"id": "a", oops}')
    const inArray = await read(`[{"id": "a", oops},\n${good},,\n null, 5, "x", [1, 2]]`)
    assert.deepEqual(ids(inArray), [null, 'b', null, null, null, null, null])
    assert.match(messages(inArray)[1] ?? '', /item 3 \(line 2\): is empty; is there a comma too many\?/)
    assert.match(
      messages(inArray)[2] ?? '',
      /item 4 \(line 3\): the item is null; expected an object \{id, question,/,
    )
  })

  test('bytes that are not UTF-8 cost their item', async () => {
    const bytes = Buffer.from(JSON.stringify([item('a', { question: 'caf#' }), item('b')]))
    bytes[bytes.indexOf('#')] = 0xe9
    const items = await read(bytes)
    assert.deepEqual(ids(items), [null, 'b'])
    assert.match(messages(items)[0] ?? '', /is not valid UTF-8/)
  })

  test('no file, a folder, an empty file, blanks, no items', async () => {
    await assert.rejects(countItems(join(folder, 'none.json')), /none\.json: there is no such file$/)
    mkdirSync(join(folder, 'folder'))
    await assert.rejects(
      countItems(join(folder, 'folder')),
      /folder: is a folder; expected a JSON or JSON-lines file/,
    )
    assert.match(await refused(''), /^data\.json: is empty; expected a JSON array/)
    assert.match(await refused(' \r\n\t'), /holds only blanks/)
    assert.match(await refused('[ \n ]'), /holds no items/)
    assert.match(await refused('\n\n', 'data.jsonl'), /holds only blanks/)
  })

  test('a file that is cut off is refused as a whole, with byte and line', async () => {
    const text = JSON.stringify([item('a'), item('b')], null, 1)
    assert.equal(await countItems(write(text)), 2)
    const half = text.slice(0, text.indexOf('"b"') + 20)
    const lastLine = half.split('\n').length
    const startLine = text.split('\n').indexOf(' },') + 2
    assert.match(
      await refused(half),
      new RegExp(
        `^data\\.json: is cut off: it ends at byte ${half.length} \\(line ${lastLine}\\), inside item 2, which starts on line ${startLine}`,
      ),
    )
    const inText = text.slice(0, text.indexOf('new to tea'))
    assert.match(
      await refused(inText),
      /inside item 1, .* and inside a text \(is a quotation mark missing\?\); expected ']'$/,
    )
    assert.match(await refused('[1, 2'), /inside item 2/)
    assert.match(await refused('[1, '), /after item 1; expected/)
    assert.match(await refused('['), /after item 0; expected/)
    const line = JSON.stringify(item('a'))
    assert.match(
      await refused(`${line}\n${line.slice(0, 50)}`, 'data.jsonl'),
      /^data\.jsonl: is cut off: it ends in the middle of item 2 \(line 2\)$/,
    )
  })

  test('what is not such a file at all is recognised', async () => {
    assert.match(await refused(Uint8Array.of(0x1f, 0x8b, 8, 0)), /compressed \(gzip\)/)
    assert.match(await refused(Buffer.from('\uFEFF[]', 'utf16le')), /UTF-16; save it as UTF-8/)
    assert.match(await refused('[1] [2]'), /there is more after the array's end \(byte 4, line 1\)/)
  })

  test('cut at any byte, a file is refused; at a line break, a file of lines is a shorter file', async () => {
    const rows = [item('ä', { narrative: 'a "quoted\\" text' }), item('b')]
    const array = Buffer.from(JSON.stringify(rows))
    for (let end = 1; end < array.length; end++) {
      assert.match(await refused(array.subarray(0, end)), /is cut off: it ends at byte/, `cut at ${end}`)
    }
    const lines = Buffer.from(rows.map(row => `${JSON.stringify(row)}\n`).join(''))
    const whole = new Set([lines.indexOf('\n'), lines.indexOf('\n') + 1, lines.length - 1, lines.length])
    for (let end = 1; end <= lines.length; end++) {
      const part = lines.subarray(0, end)
      if (whole.has(end)) assert.ok((await countItems(write(part, 'd.jsonl'))) >= 1)
      else
        assert.match(
          await refused(part, 'd.jsonl'),
          /is cut off: it ends in the middle of item/,
          `cut at ${end}`,
        )
    }
  })

  test('whatever the bytes, the answer is items and errors of ours', async () => {
    const source = Buffer.from(JSON.stringify([item('a'), item('b'), item('c')], null, 1))
    let state = 7
    const random = (below: number) => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0
      return (state >>> 8) % below
    }
    const odd = Buffer.from('[]{}",:\\\n\0\xff 0e', 'latin1')
    for (let round = 0; round < 300; round++) {
      const bytes = Buffer.from(source)
      for (let change = 0; change <= random(4); change++)
        bytes[random(bytes.length)] = odd[random(odd.length)]!
      try {
        for (const found of await read(bytes)) assert.ok(found.question ?? found.error instanceof GraspError)
      } catch (error) {
        assert.ok(error instanceof GraspError, String(error))
        assert.equal(error.code, 'DATA_INVALID')
      }
    }
  })
})

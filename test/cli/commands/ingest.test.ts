import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { CONFIG, item, Workspace } from '../grasp.ts'

const lines = (text: string) =>
  text
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Record<string, never>)

describe('ingest and topics', { concurrency: 2 }, () => {
  test('good items become questions, bad ones dead letters with file, item and field', async () => {
    using workspace = new Workspace()
    workspace.write('grasp.yaml', CONFIG)
    workspace.write('train.json', [
      item('a'),
      item('b', { profile: [] }),
      item('c', { question: '茶は? 🍵' }),
    ])
    const { code, stdout, stderr } = await workspace.grasp('ingest', '--json')
    assert.equal(code, 0, stderr)
    assert.deepEqual(JSON.parse(stdout), { run: 't', questions: 2, deadletters: 1 })
    assert.match(
      stderr,
      /train\.json: item 2 \(line 1, id 'b'\): profile is an empty list; expected .*left out/,
    )

    const list = await workspace.grasp('topics', 'list', '--json')
    const { topics } = JSON.parse(list.stdout) as {
      topics: { topic: string; records: number; sealed: boolean }[]
    }
    const named = new Map(topics.map(info => [info.topic, info]))
    assert.equal(named.get('questions')?.records, 2)
    assert.equal(named.get('questions')?.sealed, true)
    assert.equal(named.get('deadletters')?.records, 1)

    const questions = lines((await workspace.grasp('topics', 'tail', 'questions', '-n', '1')).stdout)
    assert.equal(questions.length, 1)
    assert.deepEqual([questions[0]?.topic, questions[0]?.offset, questions[0]?.key], ['questions', 1, 'c'])
    assert.equal((questions[0] as never as { value: { question: string } }).value.question, '茶は? 🍵')
    const [dead] = lines((await workspace.grasp('topics', 'tail', 'deadletters')).stdout)
    const { value } = dead as never as {
      value: { stage: string; code: string; payload: { bytes: number; start: string } }
    }
    assert.equal(value.stage, 'ingest')
    assert.equal(value.code, 'RECORD_INVALID')
    assert.match(value.payload.start, /^\{"id":"b"/)
    const [raw] = lines((await workspace.grasp('topics', 'tail', 'deadletters', '--raw')).stdout)
    const { payload } = (raw as never as { value: { payload: string } }).value
    assert.equal(JSON.parse(Buffer.from(payload, 'base64').toString()).id, 'b')
  })

  test('the same again changes nothing; other data is refused with the key that differs', async () => {
    using workspace = new Workspace()
    workspace.write('grasp.yaml', CONFIG)
    workspace.write('train.json', [item('a')])
    const first = await workspace.grasp('ingest', '--json')
    const again = await workspace.grasp('ingest', '--json')
    assert.equal(again.stdout, first.stdout)
    workspace.write('train.json', [item('b')])
    const other = await workspace.grasp('ingest')
    assert.equal(other.code, 1)
    assert.match(other.stderr, /^error LOG_MISMATCH: .*data\.train has another content/m)
    const seeded = await workspace.grasp('topics', 'list', '--set', 'training.seed=2')
    assert.equal(seeded.code, 0, 'looking is allowed to any configuration')
  })

  test('a file that is wrong as a whole changes nothing and can be put right', async () => {
    using workspace = new Workspace()
    workspace.write('grasp.yaml', CONFIG)
    const missing = await workspace.grasp('ingest')
    assert.equal(missing.code, 2)
    assert.match(missing.stderr, /^error CONFIG_INVALID: data\.train: .*train\.json: there is no such file$/m)
    for (const [content, message] of [
      ['', /train\.json: is empty/],
      [
        JSON.stringify([item('a')]).slice(0, -5),
        /train\.json: is cut off: it ends at byte \d+ \(line 1\), inside item 1/,
      ],
      [
        JSON.stringify([item('a', { rubric_aspects: [] })]),
        /no item can be used; the first: train\.json: item 1 .*rubric_aspects/,
      ],
    ] as const) {
      workspace.write('train.json', content)
      const { code, stdout, stderr } = await workspace.grasp('ingest', '--json')
      assert.equal(code, 1)
      assert.match(stderr, message)
      const { error } = JSON.parse(stdout) as { error: { code: string; message: string } }
      assert.equal(error.code, 'DATA_INVALID')
    }
    workspace.write('train.json', [item('a')])
    assert.deepEqual(JSON.parse((await workspace.grasp('ingest', '--json')).stdout).questions, 1)
  })

  test('the same id in two files is an error of the second', async () => {
    using workspace = new Workspace()
    workspace.write('grasp.yaml', CONFIG.replace('train.json', 'train.json, test: test.json'))
    workspace.write('train.json', [item('a')])
    workspace.write('test.json', [item('a'), item('b')])
    const { stdout, stderr } = await workspace.grasp('ingest', '--json')
    assert.deepEqual(JSON.parse(stdout), { run: 't', questions: 2, deadletters: 1 })
    assert.match(stderr, /test\.json: item 1 .*id 'a' was already used by train\.json item 1/)
  })

  test('a log folder that cannot be written', async () => {
    using workspace = new Workspace()
    workspace.write('grasp.yaml', CONFIG)
    workspace.write('train.json', [item('a')])
    let folder = join(workspace.path, 'closed')
    mkdirSync(folder)
    chmodSync(folder, 0o500)
    // Permissions do not bind root; the kernel's own file system does.
    if (process.getuid?.() === 0) folder = '/sys/grasp'
    const { code, stderr } = await workspace.grasp('ingest', '--set', `log.path=${folder}`)
    assert.equal(code, 1)
    assert.match(stderr, new RegExp(`^error LOG_UNAVAILABLE: .*${folder}`, 'm'))
  })

  test('a file in the way of the log, and a log that is not there', async () => {
    using workspace = new Workspace()
    workspace.write('grasp.yaml', CONFIG)
    workspace.write('train.json', [item('a')])
    workspace.write('file', 'x')
    const blocked = await workspace.grasp('ingest', '--set', 'log.path=file')
    assert.equal(blocked.code, 1)
    assert.match(blocked.stderr, /^error LOG_UNAVAILABLE: .*file/m)
    const absent = await workspace.grasp('topics', 'list')
    assert.equal(absent.code, 1)
    assert.match(absent.stderr, /^error LOG_UNAVAILABLE: /m)
    assert.equal(existsSync(join(workspace.path, '.grasp')), false, 'looking makes nothing')
  })
})

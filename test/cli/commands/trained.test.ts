import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { parseProfile } from '../../../cli/commands/answer.ts'
import { makeTinyRun, type TinyRun, tinyItem } from '../../helpers/tiny-run.ts'
import { type Ended, grasp } from '../grasp.ts'

describe('commands on a trained run', () => {
  let tiny: TinyRun
  let result: {
    policy: { version: number; path: string; weightsHash: string }
    scores: Record<string, number>
  }
  const run = (args: string[], input = ''): Promise<Ended> => grasp(args, { cwd: tiny.folder, input })
  before(async () => {
    tiny = await makeTinyRun(8)
    const { code, stdout, stderr } = await run(['run', '--json'])
    assert.equal(code, 0, stderr)
    // Exactly one document, and nothing else, on standard output.
    result = JSON.parse(stdout)
  })
  after(() => tiny.remove())

  test('run again does nothing anew and says the same', async () => {
    const again = await run(['run'])
    assert.equal(again.code, 0)
    assert.match(again.stdout, /^run tiny: 2 updates in \d/)
    assert.match(again.stdout, new RegExp(`^weights +${result.policy.weightsHash}$`, 'm'))
    assert.match(again.stdout, /^macro average +\d\.\d{3} +\d\.\d{3} +\d\.\d{3}$/m)
  })

  test('answer: one answer, from posts of a file or of standard input', async () => {
    const { code, stdout, stderr } = await run(
      ['answer', 'Which hat?', '--profile', '-', '--json'],
      'a man sat on a hat\n\nthe user ran\n',
    )
    assert.equal(code, 0, stderr)
    const given = JSON.parse(stdout)
    assert.equal(given.question, 'Which hat?')
    assert.ok(given.tokens >= 1 && given.tokens <= 6)
    assert.deepEqual(given.policy, result.policy)
    assert.deepEqual(
      given.passages.map(({ text }: { text: string }) => text),
      ['a man sat on a hat', 'the user ran'],
    )
    await writeFile(
      join(tiny.folder, 'posts.json'),
      JSON.stringify([{ id: 'x', text: 'a man sat on a hat' }, 'the user ran']),
    )
    const fromFile = await run(['answer', 'Which hat?', '-p', 'posts.json'])
    assert.equal(fromFile.stdout.trim(), given.answer.trim())
  })

  test('answer refuses what cannot be answered', async () => {
    const long = await run(['answer', 'word '.repeat(400)])
    assert.equal(long.code, 1)
    assert.match(
      long.stderr,
      /^error PROMPT_TOO_LONG: the question: the prompt has \d+ tokens .* context holds 256/m,
    )
    const gone = await run(['answer', 'q', '--policy', '999'])
    assert.equal(gone.code, 1)
    assert.match(gone.stderr, /^error CHECKPOINT_INVALID: run "tiny" has no policy 999 in .*; kept: \d/m)
    const odd = await run(['answer', 'q', '--policy', 'newest'])
    assert.equal(odd.code, 2)
    assert.match(odd.stderr, /--policy newest: expected best, latest, base or a version's number/)
    const empty = await run(['answer', ' '])
    assert.equal(empty.code, 2)
    const file = await run(['answer', 'q', '--profile', 'none.txt'])
    assert.match(file.stderr, /^error DATA_INVALID: --profile none\.txt: cannot be read/m)
    writeFileSync(join(tiny.folder, 'latin.txt'), Uint8Array.of(0x63, 0x61, 0x66, 0xe9))
    const latin = await run(['answer', 'q', '--profile', 'latin.txt'])
    assert.match(latin.stderr, /^error DATA_INVALID: --profile latin\.txt: is not UTF-8; save it as UTF-8/m)
  })

  test('eval gives the scores of the run without asking again', async () => {
    const { code, stdout, stderr } = await run(['eval', '--json'])
    assert.equal(code, 0, stderr)
    const { macro, scored, policy, split } = JSON.parse(stdout)
    assert.equal(macro, result.scores.grasp)
    assert.equal(scored, 6)
    assert.equal(policy.version, result.policy.version)
    assert.equal(split, 'test')
    const teacher = await run(['eval', '--policy', 'teacher', '--split', 'validation'])
    assert.match(teacher.stdout, /^the teacher on 4 validation questions$/m)
    const none = await run(['eval', '--policy', 'teacher', '--set', 'run=none'])
    assert.match(none.stderr, /^error LOG_UNAVAILABLE: there is no log in \S+none\S*; check log\.path/m)
    assert.equal(existsSync(join(tiny.folder, '.grasp', 'logs', 'none')), false)
  })

  test('export writes a directory with the weights of the run, once', async () => {
    const { code, stdout, stderr } = await run(['export', 'out', '--json'])
    assert.equal(code, 0, stderr)
    assert.equal(JSON.parse(stdout).weightsHash, result.policy.weightsHash)
    assert.ok(existsSync(join(tiny.folder, 'out', 'tokenizer.json')))
    const config = JSON.parse(readFileSync(join(tiny.folder, 'out', 'config.json'), 'utf8'))
    assert.equal(config.model_type, 'llama')
    const again = await run(['export', 'out'])
    assert.equal(again.code, 2)
    assert.match(again.stderr, /out: is not empty; name a new folder/)
    await writeFile(join(tiny.folder, 'file'), '')
    const file = await run(['export', 'file/out'])
    assert.match(
      file.stderr,
      /^error CONFIG_INVALID: \S+file\/out: expected a new or empty folder, but ENOTDIR/m,
    )
    // What was exported is a model of its own.
    const used = await run(['doctor', '--set', 'model.path=out', '--json'])
    assert.equal(used.code, 0, used.stdout)
  })

  test('topics tail follows the log as it is: newest, from an offset, from a time', async () => {
    const offsets = async (...args: string[]) =>
      (await run(['topics', 'tail', 'rollouts', ...args])).stdout
        .split('\n')
        .filter(line => line !== '')
        .map(line => (JSON.parse(line) as { offset: number }).offset)
    assert.deepEqual(await offsets('-n', '2'), [6, 7])
    assert.deepEqual(await offsets('--offset', '5'), [5, 6, 7])
    assert.deepEqual(await offsets('--since', '2100-01-01'), [])
    assert.equal((await offsets('--since', '2000-01-01')).length, 8)
    const wrong = await run(['topics', 'tail', 'rollouts', '--partition', '3'])
    assert.equal(wrong.code, 2)
    assert.match(wrong.stderr, /--partition 3: rollouts has 1, numbered from 0/)
  })

  test('a log of another configuration is refused', async () => {
    const { code, stderr } = await run(['run', '--set', 'training.seed=2'])
    assert.equal(code, 1)
    assert.match(stderr, /^error LOG_MISMATCH: .*\(training\.seed was 1 and is 2\)/m)
  })
})

describe('doctor', () => {
  let tiny: TinyRun
  before(async () => {
    tiny = await makeTinyRun(2)
  })
  after(() => tiny.remove())
  const doctor = async (...args: string[]) => {
    const { code, stdout } = await grasp(['doctor', '--json', ...args], { cwd: tiny.folder })
    const { ok, checks } = JSON.parse(stdout) as {
      ok: boolean
      checks: { name: string; ok: boolean; detail: string }[]
    }
    return {
      code,
      ok,
      failed: new Map(checks.filter(check => !check.ok).map(({ name, detail }) => [name, detail])),
    }
  }

  test('all is well', async () => {
    assert.deepEqual(await doctor(), { code: 0, ok: true, failed: new Map() })
  })

  test('each thing that is wrong is named, and the rest is still checked', async () => {
    await writeFile(join(tiny.folder, 'cut.json'), '[{"id": "a"')
    await writeFile(join(tiny.folder, 'file'), '')
    const { code, ok, failed } = await doctor(
      '--set',
      'data.test=cut.json',
      '--set',
      'prompt=none.md',
      '--set',
      'log.path=file',
    )
    assert.equal(code, 1)
    assert.equal(ok, false)
    assert.deepEqual([...failed.keys()], ['data.test', 'prompt', 'log.path'])
    assert.match(failed.get('data.test') ?? '', /is cut off/)
    assert.match(failed.get('log.path') ?? '', /file is a file; expected a folder/)
  })

  test('a data file of another format, or with wrong items', async () => {
    await writeFile(join(tiny.folder, 'data.yaml'), '- id: a\n  question: Which?\n')
    const yaml = await doctor('--set', 'data.train=data.yaml')
    assert.match(
      yaml.failed.get('data.train') ?? '',
      /^\S+data\.yaml: none of its items can be used, the first: item 1 \(line 1\): is not valid JSON: .* Expected a JSON array/,
    )
    await writeFile(join(tiny.folder, 'some.jsonl'), `${JSON.stringify(tinyItem('a'))}\n{"id": "b"}\n`)
    const { stdout } = await grasp(['doctor', '--set', 'data.train=some.jsonl'], { cwd: tiny.folder })
    assert.match(
      stdout,
      /^ok +data\.train +1 item in \S+; 1 would be left out, the first: item 2 \(line 2, id 'b'\)/m,
    )
  })

  test('more threads than cores', async () => {
    const { failed } = await doctor('--set', `model.threads=${availableParallelism() + 1}`)
    assert.deepEqual([...failed.keys()], ['model.threads'])
    assert.match(failed.get('model.threads') ?? '', /^\d+ threads would wait for each other, since \d+ cores/)
  })

  test('a model directory that is not one', async () => {
    const { failed } = await doctor('--set', 'model.path=.')
    assert.deepEqual([...failed.keys()], ['model', 'tokenizer'])
    assert.match(failed.get('model') ?? '', /config\.json/)
  })

  test('a configuration that does not load is one failed check', async () => {
    const { code, failed } = await doctor('--set', 'validation.tau=2')
    assert.equal(code, 1)
    assert.deepEqual(
      [...failed],
      [['configuration', '--set validation.tau=2: validation.tau is 2; expected a number from 0 to 1']],
    )
  })
})

test('parseProfile reads lists, items and lines, and names what is wrong', () => {
  assert.deepEqual(parseProfile('one\r\n\n  two ', 'f'), [
    { id: '1', text: 'one' },
    { id: '2', text: 'two' },
  ])
  assert.deepEqual(parseProfile('["a", {"text": "b"}, {"id": 7, "text": "c"}]', 'f'), [
    { id: '1', text: 'a' },
    { id: '2', text: 'b' },
    { id: '7', text: 'c' },
  ])
  assert.deepEqual(parseProfile('{"profile": ["a"]}', 'f'), [{ id: '1', text: 'a' }])
  assert.throws(
    () => parseProfile('[{"id": 1}]', 'f'),
    /--profile f: post 1 has no text; expected a text or \{id, text\}/,
  )
  assert.throws(() => parseProfile('[null]', 'f'), /post 1 has no text/)
  assert.throws(
    () => parseProfile('{"posts": []}', 'f'),
    /expected a list of posts, or an item with a profile/,
  )
  assert.throws(() => parseProfile('[1', 'f'), /is not valid JSON/)
  assert.deepEqual(parseProfile('', 'f'), [])
})

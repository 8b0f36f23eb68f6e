import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, test } from 'node:test'
import { createProgram } from '../../cli/program.ts'
import { grasp } from './grasp.ts'

describe('grasp', { concurrency: 2 }, () => {
  const anywhere = { cwd: tmpdir() }

  test('--help, from any folder, lists every command and the exit codes', async () => {
    const { code, stdout, stderr } = await grasp(['--help'], anywhere)
    assert.equal(code, 0)
    assert.equal(stderr, '')
    for (const command of [
      'run',
      'ingest',
      'eval',
      'answer',
      'topics',
      'lag',
      'reset',
      'deadletters',
      'describe',
      'export',
      'pull',
      'doctor',
      'init',
    ]) {
      assert.match(stdout, new RegExp(`^  ${command} `, 'm'))
    }
    assert.match(stdout, /Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted/)
  })

  test('every command has help of its own', () => {
    const commands = createProgram(() => {}).commands.flatMap(command => [command, ...command.commands])
    assert.ok(commands.length >= 11)
    for (const command of commands) {
      const help = command.helpInformation()
      assert.match(help, /^Usage: /)
      assert.ok(command.description().length > 0, command.name())
      for (const option of command.options) assert.ok((option.description ?? '').length > 0, option.flags)
    }
  })

  test('--version is that of the package', async () => {
    const { code, stdout } = await grasp(['--version'], anywhere)
    const file = new URL('../../package.json', import.meta.url)
    assert.equal(stdout, `${JSON.parse(readFileSync(file, 'utf8')).version}\n`)
    assert.equal(code, 0)
  })

  test('no command at all shows the help and is wrong usage', async () => {
    const { code, stdout, stderr } = await grasp([], anywhere)
    assert.equal(code, 2)
    assert.equal(stdout, '')
    assert.match(stderr, /^Usage: grasp/)
  })

  test('wrong usage ends with 2 and says what was meant', async () => {
    const cases: [string[], RegExp][] = [
      [['runn'], /^error USAGE: unknown command 'runn'\n\(Did you mean run\?\)/],
      [['run', '--confg', 'x'], /^error USAGE: unknown option '--confg'\n\(Did you mean --config\?\)/],
      [['answer'], /^error USAGE: missing required argument 'question'/],
      [
        ['describe', '--format', 'svg'],
        /^error USAGE: option '--format <format>' argument 'svg' is invalid\. Allowed/,
      ],
      [
        ['topics', 'tail', 'questions', '-n', 'x'],
        /^error USAGE: .*argument 'x' is invalid\. expected a whole number/,
      ],
      [
        ['topics', 'tail', 'question'],
        /^error CONFIG_INVALID: there is no topic 'question'; did you mean questions\?/,
      ],
      [['run', 'extra'], /^error CONFIG_INVALID: there is no stage "extra"; expected one of ingest/],
      [['lag', 'extra'], /^error USAGE: too many arguments for 'lag'/],
    ]
    for (const [args, message] of cases) {
      const { code, stdout, stderr } = await grasp(args, anywhere)
      assert.match(stderr, message)
      assert.equal(code, 2, args.join(' '))
      assert.equal(stdout, '')
    }
  })

  test('with --json wrong usage is a document, too', async () => {
    const { code, stdout, stderr } = await grasp(['export', '--json'], anywhere)
    assert.equal(code, 2)
    assert.deepEqual(JSON.parse(stdout), {
      error: { code: 'USAGE', message: "missing required argument 'folder'" },
    })
    assert.match(stderr, /^error USAGE: missing required argument/)
  })

  test('an old Node is told so, before anything else is loaded', async () => {
    const old = "data:text/javascript,Object.defineProperty(process,'versions',{value:{node:'18.20.1'}})"
    const { code, stderr } = await grasp(['--help'], { ...anywhere, node: ['--import', old] })
    assert.equal(stderr, 'error NODE_TOO_OLD: grasp needs Node 20.19 or newer, this is 18.20.1\n')
    assert.equal(code, 1)
  })
})

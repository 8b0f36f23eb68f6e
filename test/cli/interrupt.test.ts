import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { onInterrupt } from '../../cli/interrupt.ts'
import { CONFIG, grasp, Workspace } from './grasp.ts'

/** A signal as Node hands it to listeners, without the process's default end. */
const press = (name: 'SIGINT' | 'SIGTERM' = 'SIGINT') => process.emit(name, name)

describe('onInterrupt', () => {
  test('the first asks to stop, the second leaves', t => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const told: string[] = []
    let left = 0
    using interrupt = onInterrupt(
      line => told.push(line),
      () => left++,
    )
    const signal = interrupt.askToStop('stopping after this step')
    assert.equal(signal.aborted, false)
    press()
    assert.equal(signal.aborted, true)
    assert.match(told[0] ?? '', /^stopping after this step; once more stops at once/)
    assert.equal(left, 0)
    now = 1000
    press('SIGTERM')
    assert.equal(left, 1)
  })

  test('what npm forwards of one press is not a second', t => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    let left = 0
    using interrupt = onInterrupt(
      () => {},
      () => left++,
    )
    const signal = interrupt.askToStop('stopping')
    press()
    now = 20
    press()
    assert.equal(signal.aborted, true)
    assert.equal(left, 0)
  })

  test('a command that cannot stop in good order is left at once', () => {
    const told: string[] = []
    let left = 0
    using _interrupt = onInterrupt(
      line => told.push(line),
      () => left++,
    )
    press()
    assert.deepEqual(told, ['interrupted; the same command begins again with what is there'])
    assert.equal(left, 1)
  })

  test('afterwards signals are no longer caught', () => {
    const before = process.listenerCount('SIGINT')
    const interrupt = onInterrupt(
      () => {},
      () => {},
    )
    assert.equal(process.listenerCount('SIGINT'), before + 1)
    interrupt[Symbol.dispose]()
    assert.equal(process.listenerCount('SIGINT'), before)
  })
})

/**
 * Presses twice, as npm does of one Ctrl-C, once the command's process has begun to listen for so many times. SIGTERM
 * is the last that is listened for each time.
 */
const pressing = (time: number) => [
  '--import',
  `data:text/javascript,let left = ${time};
    const press = () => process.kill(process.pid, 'SIGINT');
    process.on('newListener', event => {
      if (event === 'SIGTERM' && --left === 0) setImmediate(() => (press(), press()));
    });`,
]

describe('a command that was hardly started', () => {
  test('says so while its programs are read', async () => {
    using workspace = new Workspace()
    const ended = await grasp(['run'], { cwd: workspace.path, node: pressing(1) })
    assert.deepEqual(ended, { code: 130, stdout: '', stderr: 'interrupted before anything was begun\n' })
  })

  test('says so before it can stop in good order', async () => {
    using workspace = new Workspace()
    workspace.write('grasp.yaml', CONFIG)
    const ended = await grasp(['run'], { cwd: workspace.path, node: pressing(2) })
    const stderr = 'interrupted; the same command begins again with what is there\n'
    assert.deepEqual(ended, { code: 130, stdout: '', stderr })
  })
})

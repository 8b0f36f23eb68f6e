import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import { createProgress, progressMode } from '../../cli/progress.ts'

class Screen {
  readonly isTTY = true
  columns = 40
  writes: string[] = []
  write(text: string): void {
    this.writes.push(text)
  }
  /** What a terminal of one line would show, and what scrolled above it. */
  get shown(): string[] {
    const lines = ['']
    for (const part of this.writes.join('').split(/(\r\x1b\[2K|\n)/)) {
      if (part === '\r\x1b[2K') lines[lines.length - 1] = ''
      else if (part === '\n') lines.push('')
      else lines[lines.length - 1] += part
    }
    return lines
  }
}

const seen = (count: number) =>
  ({ kind: 'stage', stage: 'ingest', seen: count, written: count, deadletters: 0 }) as const

describe('progress', () => {
  test('a terminal gets one line, at most ten times a second, and it is gone at the end', t => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const screen = new Screen()
    let now = 0
    const progress = createProgress(screen, 'line', () => now)
    while (now < 1000) {
      progress.event(seen(now))
      now += 10
      t.mock.timers.tick(10)
    }
    t.mock.timers.tick(200)
    assert.ok(screen.writes.length <= 11, `${screen.writes.length} redraws in a second`)
    assert.deepEqual(screen.shown, ['starting  ingest 990'])
    progress[Symbol.dispose]()
    assert.deepEqual(screen.shown, [''])
    progress[Symbol.dispose]()
    t.mock.timers.tick(1000)
    assert.deepEqual(screen.shown, [''])
  })

  test('log lines stand above the status line', () => {
    const screen = new Screen()
    using progress = createProgress(screen, 'line')
    progress.event(seen(1))
    progress.print('warn: something\n')
    assert.deepEqual(screen.shown, ['warn: something', 'starting  ingest 1'])
  })

  test('the line follows the width of the terminal', t => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const screen = new Screen()
    screen.columns = 12
    using progress = createProgress(screen, 'line')
    progress.event(seen(1))
    assert.deepEqual(screen.shown, ['starting'])
  })

  test('a score stays on the screen, and is told once', () => {
    const screen = new Screen()
    const progress = createProgress(screen, 'line')
    const scored = { kind: 'evaluation', role: 'teacher', done: 200, total: 200, score: 0.8618 } as const
    progress.event(scored)
    progress.event({ kind: 'recovery', deaths: 1 })
    progress.event(scored)
    progress[Symbol.dispose]()
    assert.deepEqual(screen.shown, ['teacher scores 0.862 on 200 held-out questions', ''])
  })

  test('elsewhere there are whole lines, every few seconds, the last one too', t => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const screen = new Screen()
    let now = 0
    const progress = createProgress(screen, 'plain', () => now)
    while (now < 12_000) {
      progress.event(seen(now))
      now += 500
      t.mock.timers.tick(500)
    }
    progress[Symbol.dispose]()
    const lines = screen.writes.join('').split('\n')
    assert.equal(lines.pop(), '')
    assert.deepEqual(lines, [
      '[0:00] starting  ingest 0',
      '[0:05] starting  ingest 4500',
      '[0:10] starting  ingest 9500',
      '[0:12] starting  ingest 11500',
    ])
  })

  test('off shows nothing but log lines', () => {
    const screen = new Screen()
    const progress = createProgress(screen, 'off')
    progress.event(seen(1))
    progress.print('error: x\n')
    progress[Symbol.dispose]()
    assert.deepEqual(screen.writes, ['error: x\n'])
  })

  test('the mode follows the stream', () => {
    const stream = { write: mock.fn(), isTTY: true }
    assert.equal(progressMode(stream, true, { TERM: 'xterm' }), 'line')
    assert.equal(progressMode(stream, true, { TERM: 'dumb' }), 'plain')
    assert.equal(progressMode({ write: mock.fn() }, true, {}), 'plain')
    assert.equal(progressMode(stream, false, {}), 'off')
  })
})

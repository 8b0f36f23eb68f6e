/**
 * Shows a run's progress on standard error: on a terminal one line that is rewritten at most ten times a
 * second, elsewhere a plain line every few seconds where something changed. Log lines go through here too, so
 * that they stand above the status line and never in it.
 */
import type { ProgressEvent } from '../pipelines/events.ts'
import { clock, progressLine, short } from './progress-line.ts'
import { advance, INITIAL, type ProgressState } from './progress-state.ts'

/** What is needed of a stream; `process.stderr` is one. */
export interface Terminal {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

export interface Progress extends Disposable {
  event(event: ProgressEvent): void
  /** Whole lines, with their line breaks. */
  print(text: string): void
}

const REDRAW_MS = 100
const PLAIN_MS = 5000
const ERASE_LINE = '\r\x1b[2K'

export type ProgressMode = 'line' | 'plain' | 'off'

export function progressMode(stream: Terminal, wanted: boolean, env: NodeJS.ProcessEnv): ProgressMode {
  if (!wanted) return 'off'
  return stream.isTTY && env.TERM !== 'dumb' ? 'line' : 'plain'
}

export function createProgress(
  stream: Terminal,
  mode: ProgressMode,
  clockNow = () => performance.now(),
): Progress {
  const began = clockNow()
  let state: ProgressState = INITIAL
  let timer: NodeJS.Timeout | undefined
  let shown = ''
  let lastDraw = Number.NEGATIVE_INFINITY
  /** Scores that were told: after the death of the engine they are added up again. */
  const told = new Set<string>()

  const erase = () => {
    if (mode === 'line' && shown !== '') stream.write(ERASE_LINE)
    if (mode === 'line') shown = ''
  }

  const draw = () => {
    timer = undefined
    const now = clockNow()
    lastDraw = now
    // The last column stays free: some terminals wrap when it is written.
    const width = mode === 'line' ? (stream.columns || 80) - 1 : Number.POSITIVE_INFINITY
    const line = progressLine(state, width, now)
    if (line === shown) return
    // Whole lines are for news, and a phase by itself is news once.
    if (mode === 'plain' && line === state.phase && shown.startsWith(line)) return
    stream.write(mode === 'line' ? ERASE_LINE + line : `[${clock((now - began) / 1000)}] ${line}\n`)
    shown = line
  }

  const schedule = () => {
    if (mode === 'off' || timer !== undefined) return
    const wait = (mode === 'line' ? REDRAW_MS : PLAIN_MS) - (clockNow() - lastDraw)
    if (wait <= 0) return draw()
    timer = setTimeout(draw, wait)
    timer.unref()
  }

  const print = (text: string) => {
    const wasShown = mode === 'line' && shown !== ''
    erase()
    stream.write(text)
    if (wasShown) draw()
  }

  return {
    event(event) {
      state = advance(state, event, clockNow())
      if (mode === 'off') return
      if (event.kind === 'evaluation' && event.score !== undefined) {
        // Validations come again and again: what was validated is the newest policy.
        const validation = event.role === 'validation'
        const who = validation && state.update ? `policy ${state.update.version}` : event.role
        const where = validation ? 'validation questions' : 'held-out questions'
        const news = `${who} scores ${short(event.score)} on ${event.total} ${where}\n`
        if (!told.has(news)) print(news)
        told.add(news)
      }
      schedule()
    },
    print,
    [Symbol.dispose]() {
      if (timer !== undefined) {
        clearTimeout(timer)
        if (mode === 'plain') draw()
      }
      timer = undefined
      erase()
    },
  }
}

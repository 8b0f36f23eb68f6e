/** The progress of a run in one line that fits a width. */
import { bytesPerSecond, type ProgressState, secondsLeft } from './progress-state.ts'

/** 75 → `1:15`, 3700 → `1:01:40`. */
export function clock(seconds: number): string {
  const whole = Math.round(seconds)
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  const two = (value: number) => String(value).padStart(2, '0')
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`
}

/** Three significant digits, without exponents for what training shows. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return String(value)
  if (value !== 0 && Math.abs(value) < 1e-4) return value.toExponential(1)
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

interface Part {
  readonly text: string
  /** The least important go first where there is no room. */
  readonly importance: number
}

function parts(state: ProgressState, now: number): Part[] {
  const { update, evaluation, validation, stages, download } = state
  const list: Part[] = []
  const add = (importance: number, text: string) => list.push({ text, importance })
  if (download) {
    const { bytes, totalBytes, files, totalFiles } = download
    add(9, `${short(bytes / 1e6)}/${short(totalBytes / 1e6)} MB`)
    add(5, `${files}/${totalFiles} files`)
    const rate = bytesPerSecond(state, now)
    if (rate !== undefined) add(6, `${short(rate / 1e6)} MB/s`)
  }
  if (evaluation) add(9, `${evaluation.role} ${evaluation.done}/${evaluation.total}`)
  if (update) {
    add(8, `policy ${update.version}${update.of === undefined ? '' : `/${update.of}`}`)
    if (!evaluation) {
      add(6, `loss ${short(update.loss)}`)
      add(7, `KL ${short(update.kl)}`)
      if (state.tokensPerSecond !== undefined) add(4, `${short(state.tokensPerSecond)} tokens/s`)
    }
  }
  for (const { stage, seen, total } of stages.values()) {
    if (seen === total) continue
    // Before training the counts are the news; afterwards they are a detail.
    add(update ? 2 : 6, `${stage} ${seen}${total === undefined ? '' : `/${total}`}`)
  }
  if (validation && validation.seen > 0) {
    const { seen, kept } = validation
    add(5, `kept ${kept}/${seen} (${Math.round((100 * kept) / seen)} %)`)
  }
  const dead = [...stages.values()].reduce((sum, { deadletters }) => sum + deadletters, 0)
  if (dead > 0) add(3, `${dead} dead letter${dead === 1 ? '' : 's'}`)
  if (state.deaths !== undefined) {
    add(4, state.deaths === 1 ? 'the engine died once' : `the engine died ${state.deaths} times`)
  }
  const left = secondsLeft(state, now)
  if (left !== undefined) add(7, `${clock(left)} left`)
  return list
}

/** At most `width` columns; parts are left out, the least important first, and at last the text is cut. */
export function progressLine(state: ProgressState, width: number, now: number): string {
  let shown = parts(state, now)
  const render = () => [state.phase, shown.map(({ text }) => text).join(' · ')].filter(Boolean).join('  ')
  while (shown.length > 0 && render().length > width) {
    const least = Math.min(...shown.map(({ importance }) => importance))
    const drop = shown.findLastIndex(({ importance }) => importance === least)
    shown = shown.toSpliced(drop, 1)
  }
  const line = render()
  return line.length > width ? `${line.slice(0, Math.max(0, width - 1))}…` : line
}

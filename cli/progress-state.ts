/** What is known of a run's progress: the sum of its events. */
import type { ProgressEvent } from '../pipelines/events.ts'

type Stage = Extract<ProgressEvent, { kind: 'stage' }>
type Update = Extract<ProgressEvent, { kind: 'update' }>
type Evaluation = Extract<ProgressEvent, { kind: 'evaluation' }>
type Download = Extract<ProgressEvent, { kind: 'download' }>

export interface ProgressState {
  readonly phase: string
  readonly stages: ReadonlyMap<string, Stage>
  readonly validation?: { readonly seen: number; readonly kept: number }
  readonly update?: Update
  /** Smoothed over updates. */
  readonly secondsPerUpdate?: number
  readonly tokensPerSecond?: number
  /** The evaluation under way. */
  readonly evaluation?: Evaluation
  readonly download?: Download
  /** How often the engine's process died. */
  readonly deaths?: number
  /** What is counted towards an end in this phase: `done` of `total`, the first seen at `since` milliseconds. */
  readonly pace?: {
    readonly of: string
    readonly since: number
    readonly from: number
    readonly done: number
    readonly total: number
  }
}

export const INITIAL: ProgressState = { phase: 'starting', stages: new Map() }

/** Weight of the newest update in the smoothed rates: about the last five count. */
const NEWEST = 0.3

const smooth = (before: number | undefined, now: number) =>
  before === undefined ? now : before + NEWEST * (now - before)

/** `now` in milliseconds. */
export function advance(state: ProgressState, event: ProgressEvent, now: number): ProgressState {
  switch (event.kind) {
    case 'phase': {
      const { pace: _pace, evaluation: _evaluation, ...rest } = state
      return { ...rest, phase: event.name }
    }
    case 'stage': {
      const stages = new Map(state.stages).set(event.stage, event)
      return { ...state, stages, ...paced(state, event.stage, event.seen, event.total, now) }
    }
    case 'validation':
      return { ...state, validation: { seen: event.seen, kept: event.kept } }
    case 'update': {
      // The first update of a process has waited for all that came before training: it tells no pace.
      const phase = 'training'
      if (state.update === undefined) return { ...state, phase, update: event }
      const perSecond = event.seconds > 0 ? event.tokens / event.seconds : 0
      return {
        ...state,
        phase,
        update: event,
        secondsPerUpdate: smooth(state.secondsPerUpdate, event.seconds),
        tokensPerSecond: smooth(state.tokensPerSecond, perSecond),
      }
    }
    case 'evaluation': {
      if (event.done < event.total) {
        return { ...state, evaluation: event, ...paced(state, event.role, event.done, event.total, now) }
      }
      const { evaluation: _evaluation, pace: _pace, ...rest } = state
      return rest
    }
    case 'recovery':
      // All counts begin again; updates that are made again count anew towards a pace.
      return { ...INITIAL, phase: 'recovering', deaths: event.deaths }
    case 'download':
      return { ...state, download: event, ...paced(state, 'download', event.bytes, event.totalBytes, now) }
  }
}

/** The slowest stage that knows its end sets the pace: the one that is least far. */
function paced(
  state: ProgressState,
  of: string,
  done: number,
  total: number | undefined,
  now: number,
): Pick<ProgressState, 'pace'> {
  if (total === undefined || total <= 0) return {}
  const { pace } = state
  if (pace?.of === of) return { pace: { ...pace, done, total } }
  if (pace !== undefined && pace.done < pace.total && pace.done / pace.total < done / total) return {}
  return { pace: { of, since: now, from: done, done, total } }
}

/** Seconds until the end of what is under way, where it can be told. */
export function secondsLeft(state: ProgressState, now: number): number | undefined {
  const { update, secondsPerUpdate, pace, evaluation } = state
  const updates = (update?.of ?? 0) - (update?.version ?? 0)
  if (evaluation === undefined && updates > 0) {
    return secondsPerUpdate === undefined ? undefined : updates * secondsPerUpdate
  }
  if (pace === undefined || pace.done <= pace.from || pace.done >= pace.total) return undefined
  return (pace.total - pace.done) / perSecond(pace, now)
}

/** Bytes that come in a second, of a download under way. */
export function bytesPerSecond({ pace }: ProgressState, now: number): number | undefined {
  if (pace?.of !== 'download' || pace.done <= pace.from || now <= pace.since) return undefined
  return perSecond(pace, now)
}

function perSecond({ done, from, since }: NonNullable<ProgressState['pace']>, now: number): number {
  return ((done - from) * 1000) / (now - since)
}

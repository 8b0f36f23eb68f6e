/** What a run tells its caller while it goes on, and what the caller gives it. */
import type { Logger } from 'pino'

export type ProgressEvent =
  /** What the run is at, in words: `retrieval and validation`, `training`. */
  | { readonly kind: 'phase'; readonly name: string }
  /** Counts of one stage since the start of this process; `total` where it is known. */
  | {
      readonly kind: 'stage'
      readonly stage: string
      readonly seen: number
      readonly written: number
      readonly deadletters: number
      readonly total?: number
    }
  /** RTV so far, those of earlier processes of this run included. */
  | { readonly kind: 'validation'; readonly seen: number; readonly kept: number }
  /** One optimiser step. `of` is how many there will be, where it is known. */
  | {
      readonly kind: 'update'
      readonly version: number
      readonly loss: number
      /** Forward KL, nats a token. */
      readonly kl: number
      readonly gradientNorm: number
      /** Response tokens that carried loss. */
      readonly tokens: number
      /** Since the previous update, sampling and scoring included. */
      readonly seconds: number
      readonly of?: number
    }
  /** Held-out answers of a role (student, teacher, grasp, validation); `score` once all are judged. */
  | {
      readonly kind: 'evaluation'
      readonly role: string
      readonly done: number
      readonly total: number
      readonly score?: number
    }
  /** Files that are fetched: those of them that are there, in bytes and in number. */
  | {
      readonly kind: 'download'
      readonly bytes: number
      readonly totalBytes: number
      readonly files: number
      readonly totalFiles: number
    }
  /** The engine's process died, and the work begins again from what the log and the last checkpoint have. */
  | {
      readonly kind: 'recovery'
      /** In this process so far. */
      readonly deaths: number
    }

export interface RunHooks {
  /** Aborted: finish the step, checkpoint, stop. The run then ends with GraspError INTERRUPTED. */
  readonly signal: AbortSignal
  readonly logger: Logger
  readonly progress: (event: ProgressEvent) => void
  /** How long brokers may be away when the log is opened, milliseconds; a few seconds unless told. */
  readonly patience?: number
}

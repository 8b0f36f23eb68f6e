/**
 * The one error type that crosses module boundaries. `code` is a closed set, so that a caller (or the
 * dead-letter topic) can act on it; `message` names the file, line or record, what was expected and what to do.
 */
export type ErrorCode =
  /** A configuration file or `--set` value is wrong. */
  | 'CONFIG_INVALID'
  /** A data file cannot be read or parsed as a whole. */
  | 'DATA_INVALID'
  /** One record or data item is wrong; the rest of the stream goes on. */
  | 'RECORD_INVALID'
  /** Bytes that are not a record of the topic they came from. */
  | 'RECORD_UNDECODABLE'
  /** A record was written with a schema that this reader neither has nor can resolve. */
  | 'SCHEMA_UNKNOWN'
  /** The log's folder or cluster cannot be used. */
  | 'LOG_UNAVAILABLE'
  /** The log belongs to another run or configuration. */
  | 'LOG_MISMATCH'
  /** The positions of a group cannot be set while something reads as that group. */
  | 'GROUP_ACTIVE'
  /** A note in the log is no longer what its writer took it to be: another process has changed it. */
  | 'NOTE_CHANGED'
  /** Another member of the group took over what this one was working on; a stage starts again from the committed positions. */
  | 'PARTITION_LOST'
  /** A model directory lacks a file, or a file in it is damaged. */
  | 'MODEL_INVALID'
  /** An architecture or an option of it that the engine does not implement. */
  | 'MODEL_UNSUPPORTED'
  /** A model cannot be fetched from the hub. */
  | 'HUB_FAILED'
  /** A prompt (with its response) does not fit into the model's context. */
  | 'PROMPT_TOO_LONG'
  /** A prompt template is wrong, or lacks a slot. */
  | 'PROMPT_INVALID'
  /** A slice was made with another tokenizer, vocabulary, head or shift convention. */
  | 'SLICE_MISMATCH'
  /** A judge gave no usable verdict. */
  | 'JUDGE_FAILED'
  /** The retriever failed. */
  | 'RETRIEVER_FAILED'
  /** The engine answered with a fault. */
  | 'ENGINE_FAILED'
  /** The engine's process ended by itself, was killed or hung; a new one may fare better. */
  | 'ENGINE_DIED'
  /** A stage broke its contract: it ended without finishing what it was given, or finished something twice. */
  | 'STAGE_FAILED'
  /** A checkpoint is damaged or belongs to another run. */
  | 'CHECKPOINT_INVALID'
  /** Replaying from the log gave another result than was recorded. */
  | 'REPLAY_DIVERGED'
  /** The user asked to stop. */
  | 'INTERRUPTED'

export class GraspError extends Error {
  override readonly name = 'GraspError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** Errors that condemn one record, not the stage: they become dead letters and the stream goes on. */
const PER_RECORD: ReadonlySet<ErrorCode> = new Set([
  'RECORD_INVALID',
  'RECORD_UNDECODABLE',
  'SCHEMA_UNKNOWN',
  'PROMPT_TOO_LONG',
  'SLICE_MISMATCH',
])

export function isPerRecord(error: unknown): error is GraspError {
  return error instanceof GraspError && PER_RECORD.has(error.code)
}

/** The text of anything thrown, for messages. */
export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

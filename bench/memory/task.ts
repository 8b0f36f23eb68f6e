import type { EngineOptions } from '../../engine/port.ts'

export interface MemoryTask {
  readonly engine: EngineOptions
  /** Responses of a step. */
  readonly rows: number
  /** Tokens. */
  readonly prompt: number
  readonly response: number
  /** Sampled for each sequence. */
  readonly newTokens: number
  readonly steps: number
  /** Else it only decodes. */
  readonly train: boolean
}

/** The greatest resident memory of the process until something was done. */
export interface MemoryMark {
  readonly what: string
  readonly bytes: number
}

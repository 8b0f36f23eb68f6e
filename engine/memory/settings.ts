/** What of a configuration decides how much memory the engine needs. */
import type { EngineOptions } from '../port.ts'

export interface MemorySettings
  extends Pick<
    EngineOptions,
    'keepPolicies' | 'tokensPerPass' | 'sequencesPerPass' | 'lora' | 'optimiserState'
  > {
  /** Longest response, tokens; as long as the sequence where it is left out. */
  readonly responseTokens?: number
}

/** The configuration's defaults. */
export const DEFAULT_SETTINGS: MemorySettings = {
  keepPolicies: 0,
  tokensPerPass: 4096,
  sequencesPerPass: 32,
}

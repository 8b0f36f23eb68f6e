/** What of a configuration decides how much memory the engine needs. */
import type { EngineOptions } from '../port.ts'

export interface MemorySettings
  extends Pick<
    EngineOptions,
    'keepPolicies' | 'tokensPerPass' | 'sequencesPerPass' | 'lora' | 'optimiserState'
  > {
  /** Longest response, tokens; as long as the sequence where it is left out. */
  readonly responseTokens?: number
  /** Whether decoding has matrices packed for its kernels beside the weights, as on the CPU; true by default. */
  readonly packed?: boolean
  /** Responses that are scored in one call; enough to fill the output head's chunk where it is left out. */
  readonly scoredTogether?: number
  /** Responses that gradients are accumulated of in one call; as many as a pass takes where it is left out. */
  readonly trainedTogether?: number
}

/** The configuration's defaults. */
export const DEFAULT_SETTINGS: MemorySettings = {
  keepPolicies: 0,
  tokensPerPass: 4096,
  sequencesPerPass: 32,
}

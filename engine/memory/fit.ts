/** Whether a model fits into a memory, for how long sequences, and what would make room. */
import type { ModelConfig } from '../architectures/config.ts'
import { ALL_LINEAR } from '../lora/adapter.ts'
import { type EngineMemory, engineMemory } from './engine-memory.ts'
import { ASSUMED } from './largest-model.ts'
import type { MemorySettings } from './settings.ts'

export type Work = keyof EngineMemory

export interface Fit {
  /** Memory for sequences of `length` tokens. */
  readonly length: number
  readonly use: EngineMemory
  /** Longest sequences, prompt and response, that fit: at most the model's context, 0 where none do. */
  readonly longest: Readonly<Record<Work, number>>
}

/** Sequences that most prompts with posts stay below. */
const USUAL_TOKENS = 1024
const STEP = 16

/** @param free bytes */
export function fitOf(config: ModelConfig, settings: MemorySettings, free: number): Fit {
  const memory = engineMemory(config, settings)
  const length = Math.min(config.contextLength, Math.max(USUAL_TOKENS, 2 * (settings.responseTokens ?? 0)))
  const longest = (work: Work) =>
    longestThat(tokens => memory(tokens)[work].bytes <= free, config.contextLength)
  return {
    length,
    use: memory(length),
    longest: { training: longest('training'), decoding: longest('decoding') },
  }
}

/** The greatest length up to `most` that is right, where longer ones are less right than shorter ones. */
function longestThat(right: (length: number) => boolean, most: number): number {
  if (right(most)) return most
  let [low, high] = [0, Math.ceil(most / STEP)]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (right(middle * STEP)) low = middle
    else high = middle
  }
  return low * STEP
}

export interface Saving {
  /** A configuration key and its value. */
  readonly setting: string
  /** Bytes that it makes free. */
  readonly bytes: number
}

/** Settings that take less memory, the one that saves most first. */
export function savings(config: ModelConfig, settings: MemorySettings, length: number): Saving[] {
  const needed = engineMemory(config, settings)(length).training.bytes
  const { tokensPerPass, sequencesPerPass, keepPolicies, lora, optimiserState } = settings
  const changes: [string, Partial<MemorySettings>, boolean][] = [
    [
      `training.lora.rank: ${ASSUMED.loraRank}`,
      { lora: { rank: ASSUMED.loraRank, alpha: 32, rankStabilised: false, targets: [ALL_LINEAR], seed: 1 } },
      lora === undefined,
    ],
    ['training.optimiserState: bf16', { optimiserState: 'bf16' }, optimiserState !== 'bf16'],
    [`model.tokensPerPass: ${length}`, { tokensPerPass: length }, tokensPerPass > length],
    ['training.microbatch: 1', { trainedTogether: 1 }, settings.trainedTogether !== 1],
    ['model.sequencesPerPass: 4', { sequencesPerPass: 4 }, sequencesPerPass > 4],
    ['rollout.lag: 0', { keepPolicies: 0 }, keepPolicies > 0],
  ]
  return changes
    .filter(([, , applies]) => applies)
    .map(([setting, change]) => ({
      setting,
      bytes: needed - engineMemory(config, { ...settings, ...change })(length).training.bytes,
    }))
    .filter(({ bytes }) => bytes > needed / 50)
    .sort((a, b) => b.bytes - a.bytes)
}

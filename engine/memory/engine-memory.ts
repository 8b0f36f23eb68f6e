/** How much memory the engine's process needs, by what it does: the greatest that it holds at once. */
import type { ModelConfig } from '../architectures/config.ts'
import { matricesOf } from '../decoding/decode-graph.ts'
import { MOST_STEP_TOKENS } from '../decoding/draft-length.ts'
import { blockStart, cacheLength, PLACES, valuesPerToken } from '../decoding/key-value-cache.ts'
import { LONGEST_PASS, MOST_SEQUENCES, MOST_TOKENS_SEEN } from '../decoding/limits.ts'
import { ACTIVATION_BYTES } from '../learner/limits.ts'
import { F32_BYTES, type MemoryUse, memoryUse, type Part } from './memory-use.ts'
import { parameterCount } from './parameter-count.ts'
import { headMemory, largestPass, layerMemory } from './pass-memory.ts'
import type { MemorySettings } from './settings.ts'

const MIB = 2 ** 20
/** Node, the libraries, the tokenizer and the sessions before they have run. */
const PROCESS_BYTES = 200 * MIB

export interface EngineMemory {
  /** Weights and key/value cache: to answer, or to sample for a trainer elsewhere. */
  readonly decoding: MemoryUse
  /** Everything that a run does: sample, score, train. */
  readonly training: MemoryUse
}

/**
 * For sequences (prompt and response) of a length, in tokens, as many of them as the settings let run together.
 * Longer sequences take more; how much a shape's sessions take is worked out once.
 */
export function engineMemory(
  config: ModelConfig,
  settings: MemorySettings,
): (length: number) => EngineMemory {
  const layersOf = layerMemory(config, settings.lora)
  const count = parameterCount(config, settings.lora)
  const process: Part = { what: 'the process', bytes: PROCESS_BYTES }
  const weights: Part = { what: 'weights', bytes: F32_BYTES * count.all }
  // Cosines and sines of half a head: for decoding, and twice for training.
  const tables: Part = { what: 'rotary tables', bytes: 3 * F32_BYTES * config.contextLength * config.headDim }
  return length => {
    const decoding = decodingParts(config, settings, length)
    const { tokensPerPass, scoredTogether, trainedTogether } = settings
    const scoring = layersOf(largestPass(length, tokensPerPass, scoredTogether))
    const pass = largestPass(length, tokensPerPass, trainedTogether)
    const layer = layersOf(pass)
    const response = Math.min(length, settings.responseTokens ?? length)
    const tokens = {
      scored: response * (scoredTogether ?? Number.POSITIVE_INFINITY),
      trained: response * pass.rows,
    }
    const several = pass.rows < (scoredTogether ?? Number.POSITIVE_INFINITY)
    const room = layer.kept > 0 ? Math.floor(ACTIVATION_BYTES / layer.kept) : config.layers
    const whole = Math.min(config.layers, room)
    const moment = settings.optimiserState === 'bf16' ? 2 : 4
    return {
      decoding: memoryUse([process, weights, tables, ...decoding]),
      training: memoryUse([
        process,
        tables,
        { ...weights, what: "the teacher's weights" },
        { what: "the student's weights", bytes: versions(settings) * F32_BYTES * count.changed },
        { what: 'gradients', bytes: F32_BYTES * count.trained },
        { what: "AdamW's moments", bytes: 2 * moment * count.trained },
        // The factors themselves, and those that an update makes of them.
        { what: "the adapter's factors", bytes: settings.lora ? 2 * F32_BYTES * count.trained : 0 },
        ...decoding,
        {
          what: 'activations',
          bytes:
            whole * layer.kept +
            (config.layers + 3) * layer.input +
            3 * scoring.input +
            Math.max(layer.forward, scoring.forward) +
            (whole > 0 ? layer.forward + layer.backward : 0) +
            (whole < config.layers ? layer.recomputing : 0) +
            // A layer's gradients, until they are added to those of earlier passes.
            (several ? (F32_BYTES * count.trained) / config.layers : 0),
        },
        {
          what: 'output head and loss',
          bytes: headMemory(config, tokens, several),
        },
      ]),
    }
  }
}

/** Without a lag the newest version is written over; else it is made before the oldest is dropped. */
function versions({ keepPolicies }: MemorySettings): number {
  return keepPolicies === 0 ? 1 : keepPolicies + 2
}

function decodingParts(
  config: ModelConfig,
  { sequencesPerPass, tokensPerPass, packed = true }: MemorySettings,
  length: number,
): Part[] {
  const rows = Math.min(sequencesPerPass, MOST_SEQUENCES)
  const room = cacheLength(blockStart(length)) + PLACES
  const ofRow = F32_BYTES * valuesPerToken(config) * room
  const { heads, vocabularySize, intermediateSize } = config
  const tokens = Math.min(LONGEST_PASS, tokensPerPass, length)
  const together = Math.max(1, Math.min(rows, Math.floor(MOST_TOKENS_SEEN / tokens)))
  const step = MOST_STEP_TOKENS * (3.2 * heads * room + 3 * vocabularySize)
  // The first tokens of several prompts, or the last of a long one.
  const pass = (prompts: number, seen: number) =>
    prompts * tokens * (3.2 * heads * seen + 3.6 * intermediateSize)
  const reading = Math.max(pass(together, tokens), pass(1, room))
  const copied = F32_BYTES * valuesPerToken(config) * Math.max(room, together * tokens)
  const values = [...matricesOf(config).values()].reduce((sum, [out, inputs]) => sum + out * inputs, 0)
  return [
    { what: 'key/value cache', bytes: rows * ofRow },
    // A pass over prompts is given a copy of what their rows have cached, and makes as much at most.
    { what: 'decoding steps', bytes: 2 * copied + F32_BYTES * (step + reading) },
    { what: 'packed matrices', bytes: packed ? F32_BYTES * values : 0 },
  ]
}

/** The largest model that a memory has room for, by what is done with it. */
import type { ModelConfig } from '../architectures/config.ts'
import { ALL_LINEAR } from '../lora/adapter.ts'
import { parseModelConfig } from '../weights/model-config.ts'
import { engineMemory } from './engine-memory.ts'
import { type KnownModel, knownModels } from './known-models.ts'
import { parameterCount } from './parameter-count.ts'
import { DEFAULT_SETTINGS, type MemorySettings } from './settings.ts'

/** What is done with a model. */
export const USES = ['full training', 'LoRA training', 'decoding'] as const
export type Use = (typeof USES)[number]

export interface LargestModel {
  readonly use: Use
  /** About how many parameters; 0 where not even the smallest model fits. */
  readonly parameters: number
  /** The largest well-known model that fits, if one does. */
  readonly example?: { readonly name: string; readonly parameters: number; readonly bytes: number }
}

/** What the answer is for: sequences of so many tokens, one in a training pass and 8 decoded together. */
export const ASSUMED = { tokens: 1024, sequences: 8, loraRank: 16 } as const

const FULL: MemorySettings = {
  ...DEFAULT_SETTINGS,
  tokensPerPass: ASSUMED.tokens,
  scoredTogether: 16,
  sequencesPerPass: ASSUMED.sequences,
}
const LORA: MemorySettings = {
  ...FULL,
  lora: { rank: ASSUMED.loraRank, alpha: 32, rankStabilised: false, targets: [ALL_LINEAR], seed: 1 },
}

/** Bytes that a use of a model takes. */
export function bytesFor(config: ModelConfig, use: Use, packed = true): number {
  const settings = { ...(use === 'LoRA training' ? LORA : FULL), packed }
  const { training, decoding } = engineMemory(config, settings)(ASSUMED.tokens)
  return Math.ceil(use === 'decoding' ? decoding.bytes : training.bytes)
}

/** @param free bytes; @param packed whether decoding packs matrices (settings.ts) */
export function largestModels(free: number, packed = true): LargestModel[] {
  const [known, even] = [knownModels().map(counted), evenShapes().map(counted)]
  return USES.map(use => {
    const { fits: example } = largest(known, use, free, packed)
    const { fits, next } = largest(even, use, free, packed)
    // Between two of the evenly growing shapes memory grows about as they do.
    const step = next ? (next.parameters - (fits?.parameters ?? 0)) / (next.bytes - (fits?.bytes ?? 0)) : 0
    const between = fits ? fits.parameters + (free - fits.bytes) * step : 0
    return {
      use,
      parameters: Number(Math.max(example?.parameters ?? 0, between).toPrecision(2)),
      ...(example && { example }),
    }
  })
}

interface Counted extends KnownModel {
  readonly parameters: number
}

interface Sized {
  readonly name: string
  readonly parameters: number
  readonly bytes: number
}

function counted({ name, config }: KnownModel): Counted {
  return { name, config, parameters: parameterCount(config).all }
}

/** The one of the most parameters that fits, and the next larger one. */
function largest(
  models: readonly Counted[],
  use: Use,
  free: number,
  packed: boolean,
): { fits?: Sized; next?: Sized } {
  let next: Sized | undefined
  for (const { name, config, parameters } of models.toSorted((a, b) => b.parameters - a.parameters)) {
    // The weights alone tell most of them, and cost no graphs to be made.
    if (4 * parameters > 2 * free) continue
    const model = { name, parameters, bytes: bytesFor(config, use, packed) }
    if (model.bytes <= free) return { fits: model, ...(next && { next }) }
    next = model
  }
  return next ? { next } : {}
}

/** Llamas whose depth grows with their width: from 20 million parameters to 40 thousand million. */
function evenShapes(): KnownModel[] {
  const shapes: KnownModel[] = []
  for (let heads = 4; heads <= 256; heads += 4 * Math.ceil(heads / 40)) {
    const hidden = 64 * heads
    const config = parseModelConfig('a model', {
      model_type: 'llama',
      hidden_size: hidden,
      intermediate_size: Math.round((8 * hidden) / 3 / 64) * 64,
      num_hidden_layers: Math.min(80, Math.round(10 + heads / 1.6)),
      num_attention_heads: heads,
      num_key_value_heads: heads / 4,
      vocab_size: 50_000,
      max_position_embeddings: 8192,
      hidden_act: 'silu',
      rms_norm_eps: 1e-6,
      rope_theta: 10_000,
      tie_word_embeddings: true,
    })
    shapes.push({ name: 'a model', config })
  }
  return shapes
}

/** What config.json says of rotary embeddings, in its old keys and in those of transformers 5. */
import { z } from 'zod'
import type { ModelConfig } from './config.ts'
import type { ConfigFile } from './config-file.ts'
import type { RotaryScaling } from './rotary-scaling.ts'

const positive = z.number().positive()
const scalingSchema = z.looseObject({
  rope_type: z.string().optional(),
  type: z.string().optional(),
  rope_theta: positive.nullish(),
  factor: positive.optional(),
  low_freq_factor: positive.optional(),
  high_freq_factor: positive.optional(),
  original_max_position_embeddings: positive.optional(),
})

export const rotaryShape = {
  rope_theta: positive.nullish(),
  rope_scaling: scalingSchema.nullish(),
  rope_parameters: scalingSchema.nullish(),
  original_max_position_embeddings: positive.nullish(),
  partial_rotary_factor: z.number().nullish(),
}

type RotaryValues = z.infer<z.ZodObject<typeof rotaryShape>>
type Parameters = z.infer<typeof scalingSchema>

/** As in transformers. */
const DEFAULT_THETA = 10_000
const SUPPORTED = 'default, linear, llama3'

/** @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED */
export function rotaryOf(
  file: ConfigFile,
  values: RotaryValues,
): Pick<ModelConfig, 'ropeTheta' | 'ropeScaling'> {
  // rope_scaling comes first where both are there, and what it holds before what stands beside it: as transformers does.
  const name = values.rope_scaling ? 'rope_scaling' : 'rope_parameters'
  const parameters = values[name] ?? {}
  for (const [key, value] of Object.entries(parameters)) {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      throw file.unsupported(`${name}.${key}`, value, 'the same rotary embeddings for every layer')
    }
  }
  file.only('partial_rotary_factor', parameters.partial_rotary_factor ?? values.partial_rotary_factor, [1])
  const ropeTheta = parameters.rope_theta ?? values.rope_theta ?? DEFAULT_THETA
  const ropeScaling = scalingOf(file, name, parameters, values.original_max_position_embeddings)
  return ropeScaling ? { ropeTheta, ropeScaling } : { ropeTheta }
}

function scalingOf(
  file: ConfigFile,
  name: string,
  parameters: Parameters,
  context: number | null | undefined,
): RotaryScaling | undefined {
  const kind = parameters.rope_type ?? parameters.type ?? 'default'
  const required = (key: 'factor' | 'low_freq_factor' | 'high_freq_factor') => {
    const value = parameters[key]
    if (value === undefined) throw file.invalid(`${name} of rope_type ${kind} lacks ${key}`)
    return value
  }
  if (kind === 'default') return undefined
  if (kind === 'linear') return { kind, factor: required('factor') }
  if (kind !== 'llama3') throw file.unsupported(name, kind, SUPPORTED)
  const originalContextLength = context ?? parameters.original_max_position_embeddings
  if (originalContextLength === undefined) {
    throw file.invalid(`${name} of rope_type ${kind} lacks original_max_position_embeddings`)
  }
  const [lowFrequencyFactor, highFrequencyFactor] = [
    required('low_freq_factor'),
    required('high_freq_factor'),
  ]
  if (highFrequencyFactor <= lowFrequencyFactor) {
    throw file.invalid(
      `${name} has high_freq_factor ${highFrequencyFactor}; it must exceed low_freq_factor ${lowFrequencyFactor}`,
    )
  }
  return { kind, factor: required('factor'), lowFrequencyFactor, highFrequencyFactor, originalContextLength }
}

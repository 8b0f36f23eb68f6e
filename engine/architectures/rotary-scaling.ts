/** How the frequencies of rotary embeddings are changed for contexts longer than those first trained on. */

export type RotaryScaling = LinearScaling | Llama3Scaling

/** Every frequency is divided by the factor (position interpolation, Chen et al., arXiv:2306.15595). */
export interface LinearScaling {
  readonly kind: 'linear'
  readonly factor: number
}

/**
 * Llama 3.1 (Dubey et al., arXiv:2407.21783): wavelengths, in tokens, that fit more than `highFrequencyFactor`
 * times into the first context stay, those that fit less than `lowFrequencyFactor` times are stretched by the
 * factor, and between the two the frequency is interpolated.
 */
export interface Llama3Scaling {
  readonly kind: 'llama3'
  readonly factor: number
  readonly lowFrequencyFactor: number
  readonly highFrequencyFactor: number
  readonly originalContextLength: number
}

const f32 = Math.fround

/** @param frequency radians a token, f32; rounded after each step, as transformers does in f32. */
export function scaledFrequency(frequency: number, scaling: RotaryScaling | undefined): number {
  if (scaling === undefined) return frequency
  const stretched = f32(frequency / scaling.factor)
  if (scaling.kind === 'linear') return stretched
  const { lowFrequencyFactor: low, highFrequencyFactor: high, originalContextLength: context } = scaling
  // torch divides a number by a tensor as the number times the reciprocal.
  const wavelength = f32(f32(2 * Math.PI) * f32(1 / frequency))
  if (wavelength > context / low) return stretched
  if (wavelength < context / high) return frequency
  const share = f32(f32(f32(context * f32(1 / wavelength)) - low) / (high - low))
  return f32(f32(f32(f32(1 - share) * frequency) / scaling.factor) + f32(share * frequency))
}

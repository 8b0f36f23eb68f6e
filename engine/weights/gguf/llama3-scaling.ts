/**
 * Llama 3's rotary scaling out of a GGUF file. The file has the divisor of each frequency, as a tensor, and not the
 * numbers it follows from; Hugging Face's configuration wants those. All published Llama 3.1, 3.2 and 3.3 models have
 * the same but for the factor, which is the greatest divisor: this is checked, not assumed.
 */
import { scaledFrequency } from '../../architectures/rotary-scaling.ts'

const LOW = 1
const HIGH = 4
const CONTEXT = 8192

/** The divisors were rounded to f32 by another order of operations. */
const TOLERANCE = 1e-4

/**
 * @param divisors one for each pair of features. @param context where the file names the first context's length.
 * @returns `rope_scaling` of config.json, or undefined where no llama3 scaling gives these divisors.
 */
export function llama3Scaling(
  divisors: Float32Array,
  theta: number,
  context = CONTEXT,
): Record<string, number | string> | undefined {
  const factor = divisors.reduce((greatest, divisor) => Math.max(greatest, divisor), 1)
  const scaling = {
    kind: 'llama3',
    factor,
    lowFrequencyFactor: LOW,
    highFrequencyFactor: HIGH,
    originalContextLength: context,
  } as const
  for (const [i, divisor] of divisors.entries()) {
    const frequency = Math.fround(theta ** (-i / divisors.length))
    const expected = frequency / scaledFrequency(frequency, scaling)
    if (!(Math.abs(divisor / expected - 1) < TOLERANCE)) return undefined
  }
  return {
    rope_type: 'llama3',
    factor,
    low_freq_factor: LOW,
    high_freq_factor: HIGH,
    original_max_position_embeddings: context,
  }
}

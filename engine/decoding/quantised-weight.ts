/**
 * A weight in 8 bits, as onnxruntime's MatMulNBits takes it: w ≈ (q − 128) · scale, with one scale for each 64 inputs of
 * an output.
 */
export interface QuantisedWeight {
  /** [out, in] of the weight. */
  readonly dims: readonly [number, number]
  /** [out, ⌈in / 64⌉, 64] */
  readonly values: Uint8Array
  /** [out, ⌈in / 64⌉] */
  readonly scales: Float32Array
}

export const SCALED_TOGETHER = 64
const ZERO = 128
const GREATEST = 127
/** @param data [out, in] */
export function quantise(data: Float32Array, [out, inputs]: readonly [number, number]): QuantisedWeight {
  const blocks = Math.ceil(inputs / SCALED_TOGETHER)
  const values = new Uint8Array(out * blocks * SCALED_TOGETHER).fill(ZERO)
  const scales = new Float32Array(out * blocks)
  for (let row = 0, block = 0; row < out; row++) {
    for (let start = 0; start < inputs; start += SCALED_TOGETHER, block++) {
      const end = Math.min(inputs, start + SCALED_TOGETHER)
      const from = row * inputs
      let greatest = 0
      for (let i = from + start; i < from + end; i++) {
        const size = Math.abs(data[i]!)
        if (size > greatest) greatest = size
      }
      if (greatest === 0) continue
      scales[block] = greatest / GREATEST
      const rate = GREATEST / greatest
      let at = block * SCALED_TOGETHER
      // What is added makes it positive, and cutting off the fraction rounding.
      for (let i = from + start; i < from + end; i++) values[at++] = (data[i]! * rate + (ZERO + 0.5)) | 0
    }
  }
  return { dims: [out, inputs], values, scales }
}

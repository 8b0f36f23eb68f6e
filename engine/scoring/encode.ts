/** Distributions over the vocabulary as a slice's bytes. */
import type { Dtype } from '../port.ts'
import { bytesOf } from '../runtime/bytes-of.ts'
import { narrowBf16, narrowF16, widenBf16, widenF16 } from '../weights/half.ts'

/** Little-endian bytes of f32 values in a dtype, rounded to nearest. */
export function encode(values: Float32Array, dtype: Dtype): Uint8Array {
  const narrowed = dtype === 'f32' ? values : dtype === 'f16' ? narrowF16(values) : narrowBf16(values)
  return bytesOf(narrowed)
}

/** f32 values as a reader of `dtype` gets them. */
export function rounded(values: Float32Array, dtype: Dtype): Float32Array {
  if (dtype === 'f32') return values
  return dtype === 'f16' ? widenF16(narrowF16(values)) : widenBf16(narrowBf16(values))
}

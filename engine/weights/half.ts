/**
 * 16-bit floats: IEEE 754 half (f16) and bfloat16 (the upper half of an f32), held as their bits.
 * Narrowing rounds to the nearest, ties to even, as PyTorch and NumPy do; NaN stays NaN. A `target`, where one is
 * given, is at least as long as the source.
 */

const bits = new Uint32Array(1)
const single = new Float32Array(bits.buffer)

let halfTable: Float32Array | undefined

export function widenBf16(
  source: Uint16Array,
  target: Float32Array = new Float32Array(source.length),
): Float32Array {
  const words = new Uint32Array(target.buffer, target.byteOffset, source.length)
  for (let i = 0; i < source.length; i++) words[i] = source[i]! << 16
  return target
}

export function narrowBf16(source: Float32Array, target = new Uint16Array(source.length)): Uint16Array {
  const words = new Uint32Array(source.buffer, source.byteOffset, source.length)
  for (let i = 0; i < source.length; i++) {
    const word = words[i]!
    // A NaN whose payload sits in the lower half would round to infinity.
    target[i] =
      (word & 0x7fffffff) > 0x7f800000 ? (word >>> 16) | 0x40 : (word + 0x7fff + ((word >>> 16) & 1)) >>> 16
  }
  return target
}

export function widenF16(source: Uint16Array, target = new Float32Array(source.length)): Float32Array {
  halfTable ??= Float32Array.from({ length: 65536 }, (_, half) => widenOne(half))
  for (let i = 0; i < source.length; i++) target[i] = halfTable[source[i]!]!
  return target
}

/** Values beyond ±65,519 become infinite. */
export function narrowF16(source: Float32Array): Uint16Array {
  const target = new Uint16Array(source.length)
  for (let i = 0; i < source.length; i++) target[i] = narrowOne(source[i]!)
  return target
}

function widenOne(half: number): number {
  const sign = half & 0x8000 ? -1 : 1
  const exponent = (half >>> 10) & 31
  const fraction = half & 1023
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY
  if (exponent === 0) return sign * fraction * 2 ** -24
  return sign * (1024 + fraction) * 2 ** (exponent - 25)
}

function narrowOne(value: number): number {
  single[0] = value
  const word = bits[0]!
  const sign = (word >>> 16) & 0x8000
  const magnitude = word & 0x7fffffff
  if (magnitude > 0x7f800000) return sign | 0x7e00
  // 65,520 lies halfway between the greatest half and the next power of two: it rounds up, to infinity.
  if (magnitude >= 0x477ff000) return sign | 0x7c00
  // From 2^-14 on the half is normal: rebias the exponent and round 13 bits away.
  if (magnitude >= 0x38800000)
    return sign | ((magnitude - 0x38000000 + 0xfff + ((magnitude >>> 13) & 1)) >>> 13)
  // Below, the half counts steps of 2^-24: adding 0.5 makes f32 arithmetic itself round to such a step.
  single[0] = Math.abs(value) + 0.5
  return sign | (bits[0]! - 0x3f000000)
}

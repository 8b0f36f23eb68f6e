/**
 * GGML's quantised blocks to f32, as llama.cpp's dequantize_row_* functions do it: the products here are exact in
 * f64 and rounded to f32 once, which is what its f32 arithmetic comes to as well.
 * Layouts: ggml-common.h of llama.cpp. f16 values are little-endian.
 */
import { widenF16 } from '../half.ts'

/** `source` holds whole blocks, `target` room for exactly their values. */
export type Dequantise = (source: Uint8Array, target: Float32Array) => void

const halves = widenF16(Uint16Array.from({ length: 65536 }, (_, half) => half))

function half(source: Uint8Array, at: number): number {
  return halves[source[at]! | (source[at + 1]! << 8)]!
}

export const fromF32: Dequantise = (source, target) => {
  new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(source)
}

export const fromF16: Dequantise = (source, target) => {
  for (let i = 0; i < target.length; i++) target[i] = half(source, 2 * i)
}

export const fromBf16: Dequantise = (source, target) => {
  const words = new Uint32Array(target.buffer, target.byteOffset, target.length)
  for (let i = 0; i < words.length; i++) words[i] = (source[2 * i]! << 16) | (source[2 * i + 1]! << 24)
}

/** 32 values: d f16, 32 × i8. */
export const fromQ8_0: Dequantise = (source, target) => {
  for (let at = 0, out = 0; out < target.length; at += 34, out += 32) {
    const d = half(source, at)
    for (let i = 0; i < 32; i++) target[out + i] = d * signed(source[at + 2 + i]!)
  }
}

/** 32 values: d f16, 16 bytes with two nibbles each, the low ones first; less 8. */
export const fromQ4_0: Dequantise = (source, target) => {
  for (let at = 0, out = 0; out < target.length; at += 18, out += 32) {
    const d = half(source, at)
    for (let i = 0; i < 16; i++) {
      const byte = source[at + 2 + i]!
      target[out + i] = d * ((byte & 15) - 8)
      target[out + 16 + i] = d * ((byte >> 4) - 8)
    }
  }
}

/** As Q4_0, with a minimum m f16 behind d. */
export const fromQ4_1: Dequantise = (source, target) => {
  for (let at = 0, out = 0; out < target.length; at += 20, out += 32) {
    const d = half(source, at)
    const m = half(source, at + 2)
    for (let i = 0; i < 16; i++) {
      const byte = source[at + 4 + i]!
      target[out + i] = d * (byte & 15) + m
      target[out + 16 + i] = d * (byte >> 4) + m
    }
  }
}

/** 32 values: d f16, the fifth bits as a u32, then as Q4_0; less 16. */
export const fromQ5_0: Dequantise = (source, target) => {
  for (let at = 0, out = 0; out < target.length; at += 22, out += 32) {
    const d = half(source, at)
    for (let i = 0; i < 16; i++) {
      const byte = source[at + 6 + i]!
      target[out + i] = d * ((byte & 15) + fifthBit(source, at + 2, i) - 16)
      target[out + 16 + i] = d * ((byte >> 4) + fifthBit(source, at + 2, 16 + i) - 16)
    }
  }
}

/** As Q5_0, with a minimum m f16 behind d. */
export const fromQ5_1: Dequantise = (source, target) => {
  for (let at = 0, out = 0; out < target.length; at += 24, out += 32) {
    const d = half(source, at)
    const m = half(source, at + 2)
    for (let i = 0; i < 16; i++) {
      const byte = source[at + 8 + i]!
      target[out + i] = d * ((byte & 15) + fifthBit(source, at + 4, i)) + m
      target[out + 16 + i] = d * ((byte >> 4) + fifthBit(source, at + 4, 16 + i)) + m
    }
  }
}

/** 256 values in 8 groups of 32: d, dmin f16; 8 scales and 8 minima of 6 bits in 12 bytes; 128 bytes of nibbles. */
export const fromQ4_K: Dequantise = (source, target) => {
  for (let at = 0, out = 0; out < target.length; at += 144, out += 256) {
    for (let group = 0; group < 8; group++) {
      const { d, m } = groupScale(source, at, group)
      const nibbles = at + 16 + 32 * (group >> 1)
      const shift = 4 * (group & 1)
      for (let i = 0; i < 32; i++) {
        target[out + 32 * group + i] = d * ((source[nibbles + i]! >> shift) & 15) - m
      }
    }
  }
}

/** As Q4_K, with 32 bytes of fifth bits before the nibbles: bit g of byte i belongs to value i of group g. */
export const fromQ5_K: Dequantise = (source, target) => {
  for (let at = 0, out = 0; out < target.length; at += 176, out += 256) {
    for (let group = 0; group < 8; group++) {
      const { d, m } = groupScale(source, at, group)
      const nibbles = at + 48 + 32 * (group >> 1)
      const shift = 4 * (group & 1)
      for (let i = 0; i < 32; i++) {
        const fifth = ((source[at + 16 + i]! >> group) & 1) << 4
        target[out + 32 * group + i] = d * (((source[nibbles + i]! >> shift) & 15) | fifth) - m
      }
    }
  }
}

/**
 * 256 values: 128 bytes of low nibbles, 64 bytes of upper bit pairs, 16 scales i8 (one for 16 values), d f16; less 32.
 * Each half of 128 values has 64 bytes of nibbles and 32 of pairs: its four groups of 32 take the low nibbles of both
 * runs of 32 bytes, then the high ones, and one pair of each of the 32 bytes.
 */
export const fromQ6_K: Dequantise = (source, target) => {
  for (let at = 0, out = 0; out < target.length; at += 210, out += 256) {
    const d = half(source, at + 208)
    for (let group = 0; group < 8; group++) {
      const [upper, quarter] = [group >> 2, group & 3]
      const nibbles = at + 64 * upper + 32 * (quarter & 1)
      const pairs = at + 128 + 32 * upper
      const scales = at + 192 + 2 * group
      for (let i = 0; i < 32; i++) {
        const low = (source[nibbles + i]! >> (4 * (quarter >> 1))) & 15
        const high = (source[pairs + i]! >> (2 * quarter)) & 3
        const scale = d * signed(source[scales + (i >> 4)]!)
        target[out + 32 * group + i] = scale * ((low | (high << 4)) - 32)
      }
    }
  }
}

function signed(byte: number): number {
  return (byte << 24) >> 24
}

/** Bit i of the u32 at `at`, as 16 or 0. */
function fifthBit(source: Uint8Array, at: number, i: number): number {
  return ((source[at + (i >> 3)]! >> (i & 7)) & 1) << 4
}

/**
 * Scale and minimum of a group of Q4_K and Q5_K. The 12 bytes behind d and dmin hold groups 0–3 in their lower six
 * bits (scales in bytes 0–3, minima in 4–7); groups 4–7 have their lower four bits in bytes 8–11 (scales in the low
 * nibbles) and their upper two in the upper bits of bytes 0–7.
 */
function groupScale(source: Uint8Array, at: number, group: number): { d: number; m: number } {
  const packed = at + 4
  let scale: number
  let minimum: number
  if (group < 4) {
    scale = source[packed + group]! & 63
    minimum = source[packed + 4 + group]! & 63
  } else {
    const lower = source[packed + 4 + group]!
    scale = (lower & 15) | ((source[packed + group - 4]! >> 6) << 4)
    minimum = (lower >> 4) | ((source[packed + group]! >> 6) << 4)
  }
  return { d: half(source, at) * scale, m: half(source, at + 2) * minimum }
}

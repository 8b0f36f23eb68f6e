/** Cosines and sines of rotary position embeddings. */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from './config.ts'
import { scaledFrequency } from './rotary-scaling.ts'

export interface RotaryTables {
  /** [positions, headDim / 2] f32 each. */
  readonly cos: Tensor
  readonly sin: Tensor
}

/**
 * Position t turns feature i by the angle t · theta^(−2i / headDim), its frequency scaled where the model says so.
 * Frequencies and angles are rounded to f32 on the way, as transformers does: at position 2,000 the rounding is
 * 1e-4 radians, and it is part of the model.
 */
export function rotaryTables(config: ModelConfig, positions: number = config.contextLength): RotaryTables {
  const half = config.headDim / 2
  const cos = new Float32Array(positions * half)
  const sin = new Float32Array(positions * half)
  for (let i = 0; i < half; i++) {
    const plain = Math.fround(1 / Math.fround(config.ropeTheta ** Math.fround((2 * i) / config.headDim)))
    const frequency = scaledFrequency(plain, config.ropeScaling)
    for (let t = 0; t < positions; t++) {
      const angle = Math.fround(t * frequency)
      cos[t * half + i] = Math.cos(angle)
      sin[t * half + i] = Math.sin(angle)
    }
  }
  return {
    cos: new Tensor('float32', cos, [positions, half]),
    sin: new Tensor('float32', sin, [positions, half]),
  }
}

/** The first `length` positions of tables, as views. */
export function firstPositions({ cos, sin }: RotaryTables, length: number): RotaryTables {
  const first = ({ data, dims: [, half] }: Tensor) =>
    new Tensor('float32', (data as Float32Array).subarray(0, length * half!), [length, half!])
  return { cos: first(cos), sin: first(sin) }
}

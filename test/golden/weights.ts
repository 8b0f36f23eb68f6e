/** The weights of the golden models, as models.py draws them. */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../../engine/architectures/config.ts'
import { parameterShapes } from '../../engine/weights/parameter-shapes.ts'
import type { Weights } from '../../engine/weights/weights.ts'

export function goldenWeights(config: ModelConfig, side: 'student' | 'teacher'): Weights {
  const weights = new Map<string, Tensor>()
  for (const [name, shape] of parameterShapes(config)) {
    const [center, spread] = name.endsWith('norm.weight') ? [1 - (config.normOffset ?? 0), 0.3] : [0, 0.5]
    const next = uniform(`${side} ${name}`)
    const size = shape.reduce((product, length) => product * length, 1)
    const values = Float32Array.from({ length: size }, () => center! + spread! * next())
    weights.set(name, new Tensor('float32', values, shape))
  }
  return weights
}

/** Numbers in [-1, 1): mulberry32, seeded with the FNV-1a hash of the name. */
export function uniform(name: string): () => number {
  let state = 0x811c9dc5
  for (const byte of Buffer.from(name)) state = Math.imul(state ^ byte, 0x01000193)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 31 - 1
  }
}

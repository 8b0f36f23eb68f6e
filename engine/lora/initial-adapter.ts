/** The adapter that training begins with: B is 0, so the model is what it was. */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import type { LoraOptions } from '../port.ts'
import { randomStream } from '../sampling/random-stream.ts'
import type { Weights } from '../weights/weights.ts'
import { factorShapes } from './adapter.ts'

/**
 * A is uniform within ±1/√I, which is PEFT's kaiming_uniform_ with a = √5. Each number depends on the seed, the
 * factor's name and its place alone.
 */
export function initialAdapter(config: ModelConfig, lora: LoraOptions): Weights {
  const adapter = new Map<string, Tensor>()
  for (const [name, shape] of factorShapes(config, lora)) {
    const [rows, columns] = shape as [number, number]
    const data = new Float32Array(rows * columns)
    if (name.endsWith('.lora_A.weight')) {
      const draw = randomStream({ seed: lora.seed, key: name, policy: 0 })
      const bound = 1 / Math.sqrt(columns)
      for (let i = 0; i < data.length; i++) data[i] = bound * (2 * draw(i) - 1)
    }
    adapter.set(name, new Tensor('float32', data, shape))
  }
  return adapter
}

import { float } from '../onnx/attribute.ts'
import { GraphBuilder } from '../onnx/graph-builder.ts'
import type { LoraOptions } from '../port.ts'
import { loraScale } from './adapter.ts'

/** `w` [O, I], `a` [r, I], `b` [O, r] to `y` [O, I] = w + s · b · a. */
export function mergeGraph(lora: LoraOptions, builder = new GraphBuilder('merge')): Uint8Array {
  const w = builder.input('w', 'float32', ['O', 'I'])
  const a = builder.input('a', 'float32', [lora.rank, 'I'])
  const b = builder.input('b', 'float32', ['O', lora.rank])
  const y = builder.node('Gemm', [b, a, w], { alpha: float(loraScale(lora)) })
  builder.output(y, 'float32', ['O', 'I'], 'y')
  return builder.build()
}

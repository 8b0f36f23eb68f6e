/** Qwen2 and 2.5 (Yang et al., arXiv:2407.10671): Llama's layer with biases of queries, keys and values. */
import { z } from 'zod'
import type { Architecture } from './architecture.ts'
import { preNormLayer } from './blocks.ts'
import { qwenConfig, qwenShape } from './qwen-config.ts'

const schema = z.looseObject(qwenShape)

export const qwen2: Architecture = {
  name: 'qwen2',
  configure: file => qwenConfig(file, 'qwen2', file.parse(schema)),
  layer: (ops, config, x) => preNormLayer(ops, config, x, { bias: true }),
}

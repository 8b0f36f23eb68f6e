/** Qwen3, dense (Yang et al., arXiv:2505.09388): Llama's layer with norms of queries and keys within each head. */
import { z } from 'zod'
import type { Architecture } from './architecture.ts'
import { preNormLayer } from './blocks.ts'
import { qwenConfig, qwenShape } from './qwen-config.ts'
import { size } from './shared-config.ts'

const schema = z.looseObject({ ...qwenShape, head_dim: size.default(128) })

export const qwen3: Architecture = {
  name: 'qwen3',

  configure(file) {
    const values = file.parse(schema)
    file.without(values, ['attention_bias'])
    return qwenConfig(file, 'qwen3', values)
  },

  layer: (ops, config, x) => preNormLayer(ops, config, x, { headNorms: true }),
}

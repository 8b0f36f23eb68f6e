/** What the layers need to know of positions: rotary tables and the causal mask of a pass's length. */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import { rotaryTables } from '../architectures/rotary-tables.ts'
import type { Feeds } from '../runtime/session.ts'

/** Low enough that the exponential of any score with it is 0. */
const MASKED = -1e30

/**
 * Gives `cos`, `sin` [T, headDim/2] and `mask` [T, T] for a length T. Rows are padded on the right, so the
 * causal mask alone keeps real tokens from seeing padding. The latest length is remembered.
 */
export function positionInputs(config: ModelConfig): (length: number) => Feeds {
  const tables = rotaryTables(config)
  const half = config.headDim / 2
  let known = 0
  let feeds: Feeds = {}
  return length => {
    if (length === known) return feeds
    const rows = ({ data }: Tensor) =>
      new Tensor('float32', (data as Float32Array).subarray(0, length * half), [length, half])
    const mask = new Float32Array(length * length)
    for (let query = 0; query < length; query++) {
      mask.fill(MASKED, query * length + query + 1, (query + 1) * length)
    }
    feeds = {
      cos: rows(tables.cos),
      sin: rows(tables.sin),
      mask: new Tensor('float32', mask, [length, length]),
    }
    known = length
    return feeds
  }
}

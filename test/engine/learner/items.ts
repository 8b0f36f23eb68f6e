/** Makes the learner's inputs from prompts and responses. */
import type { Sequence } from '../../../engine/learner/work.ts'
import type { Distributions, TrainItem } from '../../../engine/port.ts'
import type { Golden } from '../../golden/golden.ts'

/** Asks for the rows that predict each response token. */
export function responseSequence(prompt: Int32Array, response: Int32Array): Sequence {
  return { ids: Int32Array.from([...prompt, ...response]), from: prompt.length - 1, count: response.length }
}

export function bytesOf(data: Float32Array | Uint32Array | Uint16Array): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
}

const none = new Float32Array(0)

/** A teacher's hidden states [T, D] as f32. */
export function factored(hidden: Float32Array, width: number): Distributions {
  return { encoding: 'factored', dtype: 'f32', width, data: bytesOf(hidden), lse: none, logp: none }
}

/** A teacher's logits [T, V] as f32. */
export function dense(logits: Float32Array, width: number): Distributions {
  return { encoding: 'dense', dtype: 'f32', width, data: bytesOf(logits), lse: none, logp: none }
}

/** The k greatest of a teacher's logits [T, V]. */
export function topk(logits: Float32Array, vocabulary: number, k: number): Distributions {
  const tokens = logits.length / vocabulary
  const values = new Float32Array(tokens * k)
  const ids = new Uint32Array(tokens * k)
  const lse = new Float32Array(tokens)
  for (let token = 0; token < tokens; token++) {
    const row = logits.subarray(token * vocabulary, (token + 1) * vocabulary)
    const order = [...row.keys()].sort((a, b) => row[b]! - row[a]!).slice(0, k)
    for (const [place, id] of order.entries()) {
      values[token * k + place] = row[id]!
      ids[token * k + place] = id
    }
    lse[token] = Math.log(row.reduce((sum, logit) => sum + Math.exp(logit), 0))
  }
  return {
    encoding: 'topk',
    dtype: 'f32',
    width: k,
    data: bytesOf(values),
    ids: bytesOf(ids),
    lse,
    logp: none,
  }
}

/** What golden values are of. `hidden`: the teacher's states of each item. */
export function goldenItems(
  golden: Golden,
  hidden: readonly Float32Array[],
): Record<'forward-kl' | 'cross-entropy', TrainItem[]> {
  return {
    'forward-kl': golden.items.map(({ prompt, response }, index) => ({
      loss: 'forward-kl',
      prompt,
      response,
      teacher: factored(hidden[index]!, golden.config.hiddenSize),
    })),
    'cross-entropy': golden.items.map(({ prompt, response }) => ({
      loss: 'cross-entropy',
      prompt,
      response,
    })),
  }
}

/** Two responses for tiny models. */
export const ITEMS: readonly TrainItem[] = [1, 2].map(salt => ({
  loss: 'cross-entropy',
  prompt: tinyIds(9 + salt, salt),
  response: tinyIds(14 - salt, salt + 5),
}))

export function tinyIds(length: number, salt: number): Int32Array {
  return Int32Array.from({ length }, (_, i) => (i * 7 + salt * 13) % 250)
}

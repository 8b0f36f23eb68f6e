/** What a training item says of each of its tokens, as tensors that the loss graphs take. */
import { Tensor } from 'onnxruntime-node'
import { GraspError } from '../../errors/grasp-error.ts'
import type { ModelConfig } from '../architectures/config.ts'
import { checkIds } from '../check-ids.ts'
import type { LossKind } from '../losses/loss-kind.ts'
import type { Distributions, Dtype, TrainItem } from '../port.ts'
import { widenBf16, widenF16 } from '../weights/half.ts'

export function lossKindOf(item: TrainItem): LossKind {
  return item.loss === 'cross-entropy' ? 'cross-entropy' : `forward-kl/${item.teacher.encoding}`
}

/** By name of the loss graph's input: the rows of an item's tokens, one after the other. */
export type Target = Readonly<
  Record<string, { readonly width: number; readonly data: Float32Array | BigInt64Array }>
>

/** @throws GraspError SLICE_MISMATCH, RECORD_INVALID when an item does not fit the model. */
export function targetOf(item: TrainItem, config: ModelConfig): Target {
  checkIds('a prompt', item.prompt, config.vocabularySize)
  if (item.response.length > 0) checkIds('a response', item.response, config.vocabularySize)
  if (item.loss === 'cross-entropy')
    return { observed: { width: 1, data: BigInt64Array.from(item.response, BigInt) } }
  const { teacher } = item
  const tokens = item.response.length
  const { encoding, dtype, width, data } = teacher
  const expected = { factored: config.hiddenSize, dense: config.vocabularySize, topk: width }[encoding]
  if (width !== expected || data.length !== tokens * expected * (dtype === 'f32' ? 4 : 2)) {
    throw mismatch(
      `${encoding} teacher of ${tokens} tokens has ${data.length} bytes of ${dtype} of width ${width}, ` +
        `expected ${tokens} × ${expected} values`,
    )
  }
  const values = { width, data: decode(data, dtype) }
  if (encoding === 'factored') return { 'teacher.hidden': values }
  if (encoding === 'dense') return { 'teacher.logits': values }
  return { 'teacher.logits': values, ...topkOf(teacher, tokens, config) }
}

function topkOf({ width, ids, lse }: Distributions, tokens: number, { vocabularySize }: ModelConfig): Target {
  if (ids?.length !== tokens * width * 4 || lse.length !== tokens) {
    throw mismatch(`topk teacher of ${tokens} tokens lacks ids or log-sum-exps for ${width} entries a token`)
  }
  const words = new Uint32Array(new Uint8Array(ids).buffer)
  const beyond = words.find(id => id >= vocabularySize)
  if (beyond !== undefined)
    throw mismatch(`topk teacher names token ${beyond}; the vocabulary has ${vocabularySize}`)
  return {
    'teacher.ids': { width, data: BigInt64Array.from(words, BigInt) },
    'teacher.lse': { width: 1, data: lse },
  }
}

function decode(bytes: Uint8Array, dtype: Dtype): Float32Array {
  // Copied: a view needs an offset that is a multiple of the element's size.
  const { buffer } = new Uint8Array(bytes)
  if (dtype === 'f32') return new Float32Array(buffer)
  return dtype === 'f16' ? widenF16(new Uint16Array(buffer)) : widenBf16(new Uint16Array(buffer))
}

function mismatch(message: string): GraspError {
  return new GraspError('SLICE_MISMATCH', message)
}

/** Targets of equal widths, one after the other. */
export function concatTargets(targets: readonly Target[]): Target {
  const result: Record<string, Target[string]> = {}
  for (const [name, { width, data }] of Object.entries(targets[0]!)) {
    const parts = targets.map(target => target[name]!.data)
    const length = parts.reduce((sum, part) => sum + part.length, 0)
    const joined = data instanceof Float32Array ? new Float32Array(length) : new BigInt64Array(length)
    let offset = 0
    for (const part of parts) {
      joined.set(part as never, offset)
      offset += part.length
    }
    result[name] = { width, data: joined }
  }
  return result
}

/** The target with rows of zeros behind its own, up to the given number. */
export function padTarget(target: Target, rows: number): Target {
  const padded = Object.entries(target).map(([name, { width, data }]) => {
    const all =
      data instanceof Float32Array ? new Float32Array(rows * width) : new BigInt64Array(rows * width)
    all.set(data as never)
    return [name, { width, data: all }]
  })
  return Object.fromEntries(padded)
}

/** Rows `from` to `to − 1` of each of a target's matrices, without copies. */
export function targetFeeds(target: Target, from: number, to: number): Record<string, Tensor> {
  const feeds: Record<string, Tensor> = {}
  for (const [name, { width, data }] of Object.entries(target)) {
    const dims = [to - from, width]
    feeds[name] =
      data instanceof Float32Array
        ? new Tensor('float32', data.subarray(from * width, to * width), dims)
        : new Tensor('int64', data.subarray(from * width, to * width), dims)
  }
  return feeds
}

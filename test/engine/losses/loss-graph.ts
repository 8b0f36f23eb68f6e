/** Runs a loss on its own: values and gradient at the student's logits. */
import { Tensor } from 'onnxruntime-node'
import { gradient } from '../../../engine/graph/gradient.ts'
import { input } from '../../../engine/graph/input.ts'
import { buildModel } from '../../../engine/graph/model.ts'
import type { Value } from '../../../engine/graph/value.ts'
import { Session } from '../../../engine/runtime/session.ts'

export interface LossResult {
  /** [N] */
  readonly loss: Float32Array
  /** [N, V]: gradient of the sum of the losses. */
  readonly gradient: Float32Array
}

export type Feed = Tensor | readonly (readonly number[])[]

function isTensor(feed: Feed): feed is Tensor {
  return !Array.isArray(feed)
}

/** A matrix of f32. */
export function matrix(rows: readonly (readonly number[])[]): Tensor {
  return new Tensor('float32', Float32Array.from(rows.flat()), [rows.length, rows[0]!.length])
}

/** A matrix of int64. */
export function ids(rows: readonly (readonly number[])[]): Tensor {
  return new Tensor('int64', BigInt64Array.from(rows.flat(), BigInt), [rows.length, rows[0]!.length])
}

/** @param build the loss [N, 1] from the student's logits [N, V]; makes its other inputs */
export async function runLoss(
  build: (logits: Value) => Value,
  logits: readonly (readonly number[])[],
  feeds: Readonly<Record<string, Feed>>,
): Promise<LossResult> {
  const student = input('student', ['N', logits[0]!.length])
  const loss = build(student)
  const [slope] = gradient(loss, input('rate', ['N', 1]), [student])
  const session = await Session.create('loss', buildModel('loss', { loss, slope: slope! }), { threads: 1 })
  const given: Record<string, Tensor> = { student: matrix(logits), rate: matrix(logits.map(() => [1])) }
  for (const [name, feed] of Object.entries(feeds)) given[name] = isTensor(feed) ? feed : matrix(feed)
  const result = await session.run(given)
  await session.release()
  return { loss: result.loss!.data as Float32Array, gradient: result.slope!.data as Float32Array }
}

/** Logits of a distribution; log-softmax gives its logarithms back, whatever is added to all. */
export function logitsOf(probabilities: readonly number[], shift = 0): number[] {
  return probabilities.map(p => Math.log(p) + shift)
}

/** KL(p ‖ q) in f64. */
export function kl(p: readonly number[], q: readonly number[]): number {
  return p.reduce((sum, value, index) => sum + value * Math.log(value / q[index]!), 0)
}

/** f64 softmax. */
export function softmax(logits: readonly number[]): number[] {
  const top = Math.max(...logits)
  const weights = logits.map(value => Math.exp(value - top))
  const total = weights.reduce((sum, value) => sum + value, 0)
  return weights.map(value => value / total)
}

/** Compares the gradients of a graph with finite differences. */
import assert from 'node:assert/strict'
import { Tensor } from 'onnxruntime-node'
import { gradient } from '../../../engine/graph/gradient.ts'
import { input } from '../../../engine/graph/input.ts'
import { buildModel } from '../../../engine/graph/model.ts'
import type { Dim, Value } from '../../../engine/graph/value.ts'
import { Session } from '../../../engine/runtime/session.ts'

export interface Example {
  readonly shape: readonly Dim[]
  /** Lengths of the symbolic dimensions come from here. */
  readonly dims: readonly number[]
  /** Drawn from [-1, 1] where left out. */
  readonly data?: readonly number[]
  readonly type?: 'float32' | 'int64'
  /** Not differentiated. */
  readonly constant?: boolean
}

/** A small seeded generator (mulberry32): uniform in [-1, 1]. */
export function uniform(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2147483648 - 1
  }
}

export function size(dims: readonly number[]): number {
  return dims.reduce((product, dim) => product * dim, 1)
}

export interface CheckOptions {
  readonly step?: number
  readonly tolerance?: number
  /** Tensors for inputs that `build` makes itself. */
  readonly feeds?: Readonly<Record<string, Tensor>>
}

/**
 * Checks the gradient of Σ adjoint · y, y = build(inputs), with a random adjoint. The quotient is the
 * five-point one, whose error is O(step⁴): with f32 evaluations a step large enough to drown rounding
 * (about 1e-7 / step) would leave the two-point one too coarse.
 */
export async function checkGradient(
  build: (inputs: Readonly<Record<string, Value>>) => Value,
  examples: Readonly<Record<string, Example>>,
  { step = 0.03, tolerance = 2e-4, feeds: others = {} }: CheckOptions = {},
): Promise<void> {
  const random = uniform(7)
  const values: Record<string, Value> = {}
  const feeds: Record<string, Tensor> = { ...others }
  for (const [name, { shape, dims, data, type = 'float32' }] of Object.entries(examples)) {
    values[name] = input(name, shape, type)
    const numbers = data ?? Array.from({ length: size(dims) }, random)
    feeds[name] =
      type === 'int64'
        ? new Tensor('int64', BigInt64Array.from(numbers, BigInt), dims)
        : new Tensor('float32', Float32Array.from(numbers), dims)
  }
  const y = build(values)
  const wrt = Object.keys(examples).filter(name => !examples[name]!.constant)
  const gradients = gradient(
    y,
    input('adjoint', y.shape),
    wrt.map(name => values[name]!),
  )

  const forward = await Session.create('forward', buildModel('forward', { y }), { threads: 1 })
  const evaluate = async () => (await forward.run(pick(feeds, forward.inputs))).y!
  const { dims, data: at } = await evaluate()
  const adjoint = Float32Array.from({ length: at.length }, random)
  const outputs = Object.fromEntries(gradients.map((value, index) => [`d ${wrt[index]}`, value]))
  const backward = await Session.create('backward', buildModel('backward', outputs), { threads: 1 })
  const all = { ...feeds, adjoint: new Tensor('float32', adjoint, dims) }
  const got = await backward.run(pick(all, backward.inputs))

  for (const name of wrt) {
    const point = feeds[name]!.data as Float32Array
    assert.deepEqual(got[`d ${name}`]!.dims, feeds[name]!.dims, `shape of d ${name}`)
    const analytic = got[`d ${name}`]!.data as Float32Array
    const numeric = new Float64Array(point.length)
    for (let index = 0; index < point.length; index++) {
      const original = point[index]!
      const loss = async (offset: number) => {
        point[index] = original + offset
        const { data } = await evaluate()
        return (data as Float32Array).reduce((sum, item, i) => sum + item * adjoint[i]!, 0)
      }
      const near = (await loss(step)) - (await loss(-step))
      const far = (await loss(2 * step)) - (await loss(-2 * step))
      point[index] = original
      numeric[index] = (8 * near - far) / (12 * step)
    }
    const scale = Math.max(1, ...numeric.map(Math.abs))
    for (const [index, value] of numeric.entries()) {
      const error = Math.abs(value - analytic[index]!) / scale
      assert(error <= tolerance, `d ${name}[${index}] is ${analytic[index]}, differences give ${value}`)
    }
  }
  await forward.release()
  await backward.release()
}

function pick(feeds: Readonly<Record<string, Tensor>>, names: readonly string[]): Record<string, Tensor> {
  return Object.fromEntries(names.map(name => [name, feeds[name]!]))
}

/** Small graphs that show whether a provider computes, and computes rightly. */
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { elementTypeCode } from '../onnx/element-type.ts'
import { GraphBuilder } from '../onnx/graph-builder.ts'
import type { Provider } from './provider.ts'

interface TrialOptions {
  /** Results stay on the device. */
  readonly resident?: boolean
}

/** A session whose every node runs on the provider: none is left to the CPU in silence. */
function trialSession(
  provider: Provider,
  model: Uint8Array,
  { resident = false }: TrialOptions = {},
): Promise<InferenceSession> {
  return InferenceSession.create(model, {
    executionProviders: [provider],
    // Warnings of what does not work are part of what is to be found out.
    logSeverityLevel: 2,
    ...(provider !== 'cpu' && { extra: { session: { disable_cpu_ep_fallback: '1' } } }),
    ...(resident && { preferredOutputLocation: 'gpu-buffer' }),
  })
}

const [ROWS, INNER, COLUMNS] = [33, 65, 17]

/** Numbers from −1 to 1 that a mistake in rows or columns would not leave as they are. */
function numbers(count: number, step: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => ((i * step) % 101) / 50 - 1)
}

/** The greatest error of a product of matrices, relative to its greatest element. */
export async function productError(provider: Provider): Promise<number> {
  const g = new GraphBuilder('product')
  const a = g.input('a', 'float32', [ROWS, INNER])
  const b = g.input('b', 'float32', [INNER, COLUMNS])
  g.output(g.node('MatMul', [a, b]), 'float32', [ROWS, COLUMNS], 'y')
  const session = await trialSession(provider, g.build())
  const [left, right] = [numbers(ROWS * INNER, 7), numbers(INNER * COLUMNS, 13)]
  const { y } = await session.run({
    a: new Tensor('float32', left, [ROWS, INNER]),
    b: new Tensor('float32', right, [INNER, COLUMNS]),
  })
  const found = y!.data as Float32Array
  let [greatest, error] = [0, 0]
  for (let row = 0; row < ROWS; row++) {
    for (let column = 0; column < COLUMNS; column++) {
      let sum = 0
      for (let i = 0; i < INNER; i++) sum += left[row * INNER + i]! * right[i * COLUMNS + column]!
      greatest = Math.max(greatest, Math.abs(sum))
      const off = Math.abs(found[row * COLUMNS + column]! - sum)
      // Also what is not a number is an error.
      if (!(off <= error)) error = off
    }
  }
  return error / greatest
}

/** Whether numbers of 16 bits are computed with. Throws where they are not. */
export async function halfPrecision(provider: Provider): Promise<boolean> {
  const g = new GraphBuilder('half')
  const x = g.node('Cast', [g.input('x', 'float32', [4])], { to: elementTypeCode('float16') })
  g.output(g.node('Cast', [g.node('Mul', [x, x])], { to: elementTypeCode('float32') }), 'float32', [4], 'y')
  const session = await trialSession(provider, g.build())
  const { y } = await session.run({ x: new Tensor('float32', Float32Array.of(1, 2, 3, 4), [4]) })
  return [1, 4, 9, 16].every((value, i) => (y!.data as Float32Array)[i] === value)
}

/** Whether a result that stays on the WebGPU device can be the input of the next run. */
export async function staysOnDevice(): Promise<boolean> {
  const { expand, greatest } = await bufferSessions()
  const y = await expand(1024)
  return y.location === 'gpu-buffer' && (await greatest(y)) === FILLING
}

/** What buffers are filled with. */
const FILLING = 1.5

/** A session that makes a buffer of any size on the WebGPU device, and one that reads it there. */
export async function bufferSessions() {
  const make = new GraphBuilder('expand')
  const [x, n] = [make.input('x', 'float32', [1]), make.input('n', 'int64', [1])]
  make.output(make.node('Expand', [x, n]), 'float32', ['N'], 'y')
  const read = new GraphBuilder('greatest')
  read.output(
    read.node('ReduceMax', [read.input('y', 'float32', ['N'])], { keepdims: 0 }),
    'float32',
    [],
    'm',
  )
  const maker = await trialSession('webgpu', make.build(), { resident: true })
  const reader = await trialSession('webgpu', read.build())
  return {
    async expand(elements: number): Promise<Tensor> {
      const { y } = await maker.run({
        x: new Tensor('float32', Float32Array.of(FILLING), [1]),
        n: new Tensor('int64', BigInt64Array.of(BigInt(elements)), [1]),
      })
      return y!
    },
    async greatest(y: Tensor): Promise<number> {
      const { m } = await reader.run({ y })
      return (m!.data as Float32Array)[0]!
    },
  }
}

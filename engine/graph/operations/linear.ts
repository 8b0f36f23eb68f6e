/** Products with a weight matrix [O, I], as Hugging Face stores it. The weight is never transposed in memory. */
import { dependsOnThreads } from '../../runtime/thread-invariance.ts'
import { expectShape, type Operation, type Value } from '../value.ts'
import { add } from './add.ts'

const forward: Operation = {
  name: 'linear',
  emit: (builder, inputs) =>
    builder.node('FusedMatMul', inputs, { transB: true }, { domain: 'com.microsoft' }),
  gradient: ({ inputs: [x, weight] }, adjoint) => [
    inputGradient(adjoint, weight!),
    weightGradient(adjoint, x!),
  ],
}

/** x · Wᵀ: [.., I] to [.., O]. */
export function linear(x: Value, weight: Value): Value {
  expectShape(weight.shape.length === 2 && x.shape.at(-1) === weight.shape[1], 'linear', x, weight)
  return { operation: forward, inputs: [x, weight], shape: [...x.shape.slice(0, -1), weight.shape[0]!] }
}

const ofInput: Operation = {
  name: 'linear input gradient',
  emit: (builder, inputs) => builder.node('MatMul', inputs),
}

/** dY · W: [.., O] to [.., I]. */
export function inputGradient(adjoint: Value, weight: Value): Value {
  return {
    operation: ofInput,
    inputs: [adjoint, weight],
    shape: [...adjoint.shape.slice(0, -1), weight.shape[1]!],
  }
}

const ofWeight: Operation = {
  name: 'linear weight gradient',
  emit(builder, [adjoint, x, sum], { inputs }) {
    const flat = [adjoint!, x!].map((name, index) => {
      const { shape } = inputs[index]!
      return shape.length === 2
        ? name
        : builder.node('Reshape', [name, builder.ints([-1, Number(shape.at(-1))])])
    })
    const [rows, columns] = inputs.map(({ shape }) => Number(shape.at(-1)))
    if (!dependsOnThreads(rows!, columns!)) {
      return builder.node('Gemm', sum === undefined ? flat : [...flat, sum], { transA: true })
    }
    const product = builder.node('Gemm', flat.reverse(), { transA: true })
    const turned = builder.node('Transpose', [product], { perm: [1, 0] })
    return sum === undefined ? turned : builder.node('Add', [sum, turned])
  },
  // Gemm takes a matrix to start from, so that running sums cost no pass of their own.
  addOnto: (value, sum) =>
    value.inputs.length === 2 ? { ...value, inputs: [...value.inputs, sum] } : add(sum, value),
}

/** dYᵀ · x over all rows: [O, I]. */
export function weightGradient(adjoint: Value, x: Value): Value {
  return { operation: ofWeight, inputs: [adjoint, x], shape: [adjoint.shape.at(-1)!, x.shape.at(-1)!] }
}

/**
 * A product with W = W₀ + s · B · A, given merged, of which A and B are learned. Forward it is the plain product;
 * backward W's own gradient, of W's size, is never formed.
 */
import { expectShape, type Operation, type Value } from '../value.ts'
import { inputGradient, linear, weightGradient } from './linear.ts'
import { scale } from './scale.ts'

export interface Factors {
  /** [r, I] */
  readonly a: Value
  /** [O, r] */
  readonly b: Value
  /** s */
  readonly scale: number
}

/** x · Wᵀ: [.., I] to [.., O]. */
export function adaptedLinear(x: Value, weight: Value, { a, b, scale: factor }: Factors): Value {
  const plain = linear(x, weight)
  const fits = a.shape[1] === weight.shape[1] && b.shape[0] === weight.shape[0] && a.shape[0] === b.shape[1]
  expectShape(fits, 'adapted linear', weight, a, b)
  const operation: Operation = {
    name: 'adapted linear',
    emit: (builder, [x, weight], value) => plain.operation.emit(builder, [x!, weight!], value),
    // Of s · (x · Aᵀ) · Bᵀ.
    gradient: (_, adjoint) => [
      inputGradient(adjoint, weight),
      null,
      weightGradient(scale(inputGradient(adjoint, b), factor), x),
      weightGradient(adjoint, scale(linear(x, a), factor)),
    ],
  }
  return { operation, inputs: [x, weight, a, b], shape: plain.shape }
}

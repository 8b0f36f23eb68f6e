import { scalar } from '../input.ts'
import type { Operation, Value } from '../value.ts'
import { multiply } from './multiply.ts'
import { subtract } from './subtract.ts'

const operation: Operation = {
  name: 'tanh',
  emit: (builder, inputs) => builder.node('Tanh', inputs),
  gradient: (value, adjoint) => [multiply(adjoint, tanhSlope(value))],
}

export function tanh(value: Value): Value {
  return { operation, inputs: [value], shape: value.shape }
}

/** The derivative where the hyperbolic tangent is t: 1 − t². */
export function tanhSlope(t: Value): Value {
  return subtract(scalar(1), multiply(t, t))
}

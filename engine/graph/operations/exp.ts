import type { Operation, Value } from '../value.ts'
import { multiply } from './multiply.ts'

const operation: Operation = {
  name: 'exp',
  emit: (builder, inputs) => builder.node('Exp', inputs),
  gradient: (value, adjoint) => [multiply(adjoint, value)],
}

export function exp(value: Value): Value {
  return { operation, inputs: [value], shape: value.shape }
}

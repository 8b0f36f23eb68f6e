import { scalar } from '../input.ts'
import type { Operation, Value } from '../value.ts'
import { multiply } from './multiply.ts'
import { subtract } from './subtract.ts'

const operation: Operation = {
  name: 'sigmoid',
  cheap: true,
  emit: (builder, inputs) => builder.node('Sigmoid', inputs),
  gradient: (value, adjoint) => [multiply(adjoint, multiply(value, subtract(scalar(1), value)))],
}

export function sigmoid(value: Value): Value {
  return { operation, inputs: [value], shape: value.shape }
}

import type { Operation, Value } from '../value.ts'
import { multiply } from './multiply.ts'
import { subtract } from './subtract.ts'
import { sumTo } from './sum-to.ts'

const operation: Operation = {
  name: 'softmax',
  emit: (builder, inputs) => builder.node('Softmax', inputs, { axis: -1 }),
  gradient(value, adjoint) {
    const mean = sumTo(multiply(adjoint, value), [...value.shape.slice(0, -1), 1])
    return [multiply(value, subtract(adjoint, mean))]
  },
}

/** Over the last axis. */
export function softmax(value: Value): Value {
  return { operation, inputs: [value], shape: value.shape }
}

import type { Operation, Value } from '../value.ts'
import { exp } from './exp.ts'
import { multiply } from './multiply.ts'
import { subtract } from './subtract.ts'
import { sumTo } from './sum-to.ts'

const operation: Operation = {
  name: 'logSoftmax',
  emit: (builder, inputs) => builder.node('LogSoftmax', inputs, { axis: -1 }),
  gradient: (value, adjoint) => [
    subtract(adjoint, multiply(exp(value), sumTo(adjoint, [...value.shape.slice(0, -1), 1]))),
  ],
}

/** Over the last axis. */
export function logSoftmax(value: Value): Value {
  return { operation, inputs: [value], shape: value.shape }
}

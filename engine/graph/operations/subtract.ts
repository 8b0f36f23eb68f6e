import type { Operation, Value } from '../value.ts'
import { negate } from './negate.ts'
import { broadcast, sumTo } from './sum-to.ts'

const operation: Operation = {
  name: 'subtract',
  cheap: true,
  emit: (builder, inputs) => builder.node('Sub', inputs),
  gradient: ({ inputs: [a, b] }, adjoint) => [sumTo(adjoint, a!.shape), negate(sumTo(adjoint, b!.shape))],
}

/** a − b, with broadcasting. */
export function subtract(a: Value, b: Value): Value {
  return { operation, inputs: [a, b], shape: broadcast('subtract', a, b) }
}

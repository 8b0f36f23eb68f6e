import type { Operation, Value } from '../value.ts'
import { broadcast, sumTo } from './sum-to.ts'

const operation: Operation = {
  name: 'multiply',
  cheap: true,
  emit: (builder, inputs) => builder.node('Mul', inputs),
  gradient: ({ inputs: [a, b] }, adjoint) => [
    sumTo(multiply(adjoint, b!), a!.shape),
    sumTo(multiply(adjoint, a!), b!.shape),
  ],
}

/** a · b by elements, with broadcasting. */
export function multiply(a: Value, b: Value): Value {
  return { operation, inputs: [a, b], shape: broadcast('multiply', a, b) }
}

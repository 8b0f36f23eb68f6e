import type { Operation, Value } from '../value.ts'
import { broadcast, sumTo } from './sum-to.ts'

const operation: Operation = {
  name: 'add',
  cheap: true,
  emit: (builder, inputs) => builder.node('Add', inputs),
  gradient: ({ inputs }, adjoint) => inputs.map(part => sumTo(adjoint, part.shape)),
}

/** a + b, with broadcasting. */
export function add(a: Value, b: Value): Value {
  return { operation, inputs: [a, b], shape: broadcast('add', a, b) }
}

import type { Operation, Value } from '../value.ts'
import { broadcast } from './sum-to.ts'

const operation: Operation = { name: 'divide', emit: (builder, inputs) => builder.node('Div', inputs) }

/** a / b by elements, with broadcasting. Not differentiated. */
export function divide(a: Value, b: Value): Value {
  return { operation, inputs: [a, b], shape: broadcast('divide', a, b) }
}

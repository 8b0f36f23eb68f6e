import type { Operation, Value } from '../value.ts'

const operation: Operation = { name: 'log', emit: (builder, inputs) => builder.node('Log', inputs) }

/** Natural logarithm. Not differentiated: losses know the gradient of what they take it of. */
export function log(value: Value): Value {
  return { operation, inputs: [value], shape: value.shape }
}

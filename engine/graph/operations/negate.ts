import type { Operation, Value } from '../value.ts'

const operation: Operation = {
  name: 'negate',
  cheap: true,
  emit: (builder, inputs) => builder.node('Neg', inputs),
  gradient: (_, adjoint) => [negate(adjoint)],
}

export function negate(value: Value): Value {
  return { operation, inputs: [value], shape: value.shape }
}

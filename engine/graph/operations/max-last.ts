import type { Operation, Value } from '../value.ts'

const operation: Operation = {
  name: 'maxLast',
  emit: (builder, [source]) => builder.node('ReduceMax', [source!, builder.ints([-1])], { keepdims: true }),
}

/** The greatest of the last axis, [.., V] to [.., 1]. Not differentiated. */
export function maxLast(value: Value): Value {
  return { operation, inputs: [value], shape: [...value.shape.slice(0, -1), 1] }
}
